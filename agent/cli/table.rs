//! Plain aligned columns for people.

use std::fmt;

use crate::harmless::Harmless;

/// Rows under headings.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Begins with its headings.
    pub(crate) fn new(headings: &[&str]) -> Self {
        Self { rows: vec![headings.iter().map(|heading| (*heading).to_owned()).collect()] }
    }

    /// Adds a row. Texts may come from a job: whatever would move a terminal's cursor is shown as text.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| one_line(&cell)).collect());
    }

    /// How many rows there are, the headings not counted.
    pub(crate) fn len(&self) -> usize {
        self.rows.len() - 1
    }
}

/// A text of any origin as one harmless line.
pub(crate) fn one_line(text: &str) -> String {
    let mut filter = Harmless::default();
    let mut bytes = filter.filter(text.replace(['\n', '\r', '\t'], " ").as_bytes());
    bytes.extend(filter.finish());
    String::from_utf8_lossy(&bytes).into_owned()
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(&format!("{cell:<width$}  "));
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_no_cell_breaks_the_line() {
        let mut table = Table::new(&["A", "B"]);
        table.row(["one".to_owned(), "x\ny\x1b[2J".to_owned()]);
        assert_eq!(table.to_string(), "A    B\none  x y^[[2J\n");
        assert_eq!(table.len(), 1);
    }
}
