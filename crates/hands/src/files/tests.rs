//! The tools in a real directory, called as the runtime calls them.

mod changes;
mod crashes;
mod searches;
mod views;
mod words;
