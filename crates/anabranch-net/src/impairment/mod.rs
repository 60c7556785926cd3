//! Impairments of a link: loss, burst loss and jitter.

mod gilbert_elliott;
mod jitter;
mod loss;

pub(crate) use gilbert_elliott::GilbertElliott;
pub use gilbert_elliott::GilbertElliottConfig;
pub(crate) use jitter::Jitter;
pub use jitter::JitterModel;
pub(crate) use loss::Loss;
