//! The tool `merge_workspace`.
