//! What an author meets, from the first project to a plugin that is installed.

mod project;
