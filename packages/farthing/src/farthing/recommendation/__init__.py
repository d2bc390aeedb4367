"""The product's core: which method keeps a promise for the least money, proved and measured."""
