"""The baseline: nothing to do, since new databases are made from core.store.tables."""

revision = "0007"
down_revision = None
