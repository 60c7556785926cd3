//! anabranch-net
