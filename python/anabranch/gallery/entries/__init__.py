"""Published results, with two files each: NAME.toml has the text, and NAME.py the code."""
