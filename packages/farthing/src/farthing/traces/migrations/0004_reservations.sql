-- What is set aside is known twice already: in `spending`, and call by call in `call_log`.

DROP TABLE reservations;
