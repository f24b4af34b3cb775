//! How files in these formats are read and written whole.
