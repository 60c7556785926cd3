//! The link without a tool.

use anabranch_config::part_without_parameters;

use super::{DescribeShaper, Model};

part_without_parameters! {
    /// Selects a link that no tool shapes.
    pub struct PlainConfig;
    NAME = "plain";
    SUMMARY = "A queue, a transmitter, and then the delay.";
    SOURCE = "the default of links";
}

impl DescribeShaper for PlainConfig {
    fn model(&self) -> Option<Model> {
        None
    }
}
