//! sd_notify datagrams.
