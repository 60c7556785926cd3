//! A proxy that carries the connections of unmodified programs over several uplinks with Multipath
//! TCP, and the relay at the other end.

pub mod convert;
