//! Impairments of a link: loss, burst loss, losses of a trace, and jitter.

mod gilbert_elliott;
mod jitter;
mod loss;
mod loss_trace;

pub(crate) use gilbert_elliott::GilbertElliott;
pub use gilbert_elliott::GilbertElliottConfig;
pub(crate) use jitter::Jitter;
pub use jitter::JitterModel;
pub(crate) use loss::Loss;
pub use loss_trace::LossTrace;
