"""Multipath TCP that you can run, measure, explain and trust.

Use this package to describe scenarios, run them in parallel, keep results in a folder, and check
published claims against them. The compiled engine runs the scenarios in virtual time. The command
`anabranch` does the same without Python code.
"""

import lazy_loader

# `__init__.pyi` lists the names and their modules. A module is imported when one of its names is
# first used, so that the command line responds quickly.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
