//! What happens to packets on a link besides waiting.

mod jitter;
mod loss;

pub(crate) use jitter::Jitter;
pub use jitter::JitterModel;
pub(crate) use loss::Loss;
