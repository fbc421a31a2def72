//! `kvsim help`: the commands, grouped by what one wants to do, in the words of their own definitions.

use clap::Command;
use std::fmt::Write;

/// Tasks and the names of their commands, in the order of the overview. A command that stands nowhere comes last.
const TASKS: &[(&str, &[&str])] = &[
    ("Answer which policy, and what it costs", &["recommend", "memory"]),
    ("Sweep policies, budgets and windows", &["replay", "table", "plot"]),
    ("Look at a trace, and at what was done with it", &["inspect", "analyze", "policies", "decisions", "diff"]),
    ("Convert and make traces", &["convert", "generate"]),
    ("Check and install", &["vectors", "decide", "completions"]),
];

/// The same command, whose overview is grouped.
pub fn grouped(command: Command) -> Command {
    let header = *command.get_styles().get_header();
    let mut overview = String::new();
    for (task, names) in TASKS {
        let commands = names.iter().filter_map(|name| command.find_subcommand(name));
        overview.push_str(&group(&format!("{header}{task}:{header:#}"), commands));
    }
    overview.push_str(&group("More:", command.get_subcommands().filter(|command| is_left(command))));
    command.help_template(format!(
        "{{before-help}}{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{overview}{header}Options:{header:#}\n\
         {{options}}{{after-help}}"
    ))
}

fn is_left(command: &Command) -> bool {
    let stands = |(_, names): &(&str, &[&str])| names.contains(&command.get_name());
    !command.is_hide_set() && !TASKS.iter().any(stands)
}

fn group<'a>(heading: &str, commands: impl Iterator<Item = &'a Command>) -> String {
    let mut text = String::new();
    for command in commands {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        writeln!(text, "  {:<13}{about}", command.get_name()).expect("a text takes all");
    }
    if text.is_empty() { text } else { format!("{heading}\n{text}\n") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::command;

    #[test]
    fn every_command_stands_under_one_task() {
        for command in command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let found = TASKS.iter().flat_map(|(_, names)| *names).filter(|name| **name == command.get_name()).count();
            assert_eq!(found, 1, "{}: put it under a task", command.get_name());
        }
    }

    #[test]
    fn every_help_has_an_example() {
        for command in command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let help = command.clone().render_long_help().to_string();
            assert!(help.contains("Example"), "{}", command.get_name());
            assert!(help.contains(&format!("kvsim {}", command.get_name())), "{}", command.get_name());
        }
    }
}
