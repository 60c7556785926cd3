"""Multipath TCP that you can run, measure, explain and trust.

The compiled engine runs scenarios in virtual time. This package describes scenarios, runs them
in parallel, keeps results in a folder, and checks published claims against them. The command
line `anabranch` does the same without writing Python.
"""

import lazy_loader

# The names, and where each is from, are in `__init__.pyi`. A module is imported when one of its
# names is first used, so that the command line can answer at once.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
