//! Tests of the file tools in a real directory, called in the same steps as the runtime calls them.

mod changes;
mod crashes;
mod searches;
mod views;
mod words;
