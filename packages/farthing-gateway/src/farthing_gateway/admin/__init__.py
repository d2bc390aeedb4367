"""The administrator's page: what was saved and spent, whether promises are kept, who may ask."""
