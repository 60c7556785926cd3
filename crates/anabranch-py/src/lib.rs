//! The Python module `anabranch._core`.
