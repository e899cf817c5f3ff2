"""Students that choose their own questions to a session, of this process or behind a service."""
