"""Comparing answers: what a failure costs them."""
