"""Simulated runs on stand-in data: teachers, votes, noise, and forecasts made of them."""
