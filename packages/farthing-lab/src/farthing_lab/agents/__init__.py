"""Agents that the laboratory studies: ReAct, a guide that explains, thoughts of a set length."""
