"""FrugalGPT."""
