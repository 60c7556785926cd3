//! anabranch-proto
