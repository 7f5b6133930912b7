"""The version of the toolkit and the app."""

VERSION = "0.1.0"
