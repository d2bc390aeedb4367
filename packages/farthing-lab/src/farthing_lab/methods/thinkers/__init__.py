"""How long a model thinks: rewards, advantages and samplers that keep thoughts short."""
