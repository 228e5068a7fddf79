//! What the person sees of a workspace: its files, its history, and how it differs from what it began with.
