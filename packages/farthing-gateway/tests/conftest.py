"""Databases that the gateway's tests run on."""

from databases import bare, postgres, schema, where

__all__ = ["bare", "postgres", "schema", "where"]
