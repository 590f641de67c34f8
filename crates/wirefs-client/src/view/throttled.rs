//! Writers that wait because too much data is unacknowledged.

use crate::call::CallId;
use std::collections::VecDeque;

/// Callers that wait because too much is behind.
#[derive(Debug, Default)]
pub(crate) struct Throttled(pub(crate) VecDeque<(CallId, u32)>);
