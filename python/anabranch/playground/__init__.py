"""Serves the playground, a web page that runs the engine in the browser."""
