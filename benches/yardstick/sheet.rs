//! The table of the yardstick: a line for everything measured.

use crate::common::machine::Machine;
use crate::common::rounds::Times;
use crate::common::table::{Table, ms};

/// Lines collected for the table, remarks below it, and what the machine did meanwhile.
pub struct Sheet {
    machine: Machine,
    table: Table,
    remarks: Vec<String>,
}

impl Sheet {
    pub fn new() -> Sheet {
        let table = Table::new(["what", "least", "median", "comes to", "aim"], 1);
        Sheet { machine: Machine::watch(), table, remarks: Vec::new() }
    }

    /// A line for something whose times were taken; `comes_to` is the figure that they make.
    pub fn line(&mut self, what: &str, times: &Times, comes_to: String, aim: &str) {
        self.figure(what, [times.least(), times.median()], comes_to, aim);
    }

    /// A line for a time that was derived from others: its least and its median, in seconds.
    pub fn figure(&mut self, what: &str, [least, median]: [f64; 2], comes_to: String, aim: &str) {
        eprintln!("measured: {what}");
        self.table.row([what.to_owned(), ms(least), ms(median), comes_to, aim.to_owned()]);
    }

    /// A sentence below the table.
    pub fn remark(&mut self, text: String) {
        self.remarks.push(text);
    }

    pub fn print(&self) {
        println!("{}", self.table.markdown());
        self.remarks.iter().for_each(|remark| println!("{remark}"));
        println!("{}", self.machine.line());
    }
}
