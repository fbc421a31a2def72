//! One flag for each parameter of the table: a new parameter needs no line here.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use kvsim::error::Error;
use kvsim::experiment::lanes::Asked;
use kvsim::experiment::list;
use kvsim::policy::parameter::{Kind, PARAMETERS, Parameter};
use kvsim::policy::table::POLICIES;

/// What was typed for each parameter that was named.
#[derive(Clone, Debug, Default)]
pub struct ParameterArgs {
    typed: Vec<(&'static Parameter, Vec<String>)>,
}

impl ParameterArgs {
    /// The values asked for, parameter by parameter.
    ///
    /// # Errors
    /// When a list or a value makes no sense; the message names the flag.
    pub fn values(&self) -> Result<Asked, Error> {
        let parse = |parameter: &Parameter, typed: &[String]| {
            let expanded = typed.iter().map(|text| list::expand(text)).collect::<Result<Vec<_>, _>>()?.concat();
            expanded.iter().map(|text| parameter.parse(text)).collect::<Result<Vec<_>, _>>()
        };
        let all = self.typed.iter().map(|(parameter, typed)| {
            let values = parse(parameter, typed);
            let values = values.map_err(|problem: String| Error::usage(format!("--{}: {problem}", parameter.name)))?;
            Ok((*parameter, values))
        });
        all.collect()
    }
}

impl Args for ParameterArgs {
    fn augment_args(command: Command) -> Command {
        PARAMETERS.iter().fold(command, |command, parameter| command.arg(flag(parameter)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        ParameterArgs::augment_args(command)
    }
}

impl FromArgMatches for ParameterArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let typed = |parameter: &&'static Parameter| {
            let values = matches.get_many::<String>(parameter.name)?;
            Some((*parameter, values.cloned().collect()))
        };
        Ok(ParameterArgs { typed: PARAMETERS.iter().filter_map(typed).collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = ParameterArgs::from_arg_matches(matches)?;
        Ok(())
    }
}

fn flag(parameter: &Parameter) -> Arg {
    Arg::new(parameter.name)
        .long(parameter.name)
        .value_name("LIST")
        .action(ArgAction::Append)
        .help_heading("Parameters of policies (lists and ranges multiply)")
        .help(format!("{}{}{}", capitalized(parameter.summary), words(parameter), users(parameter)))
}

fn capitalized(text: &str) -> String {
    text[..1].to_uppercase() + &text[1..]
}

/// The values of a parameter that takes words.
fn words(parameter: &Parameter) -> String {
    match parameter.kind {
        Kind::Word(words) => format!(": {}", words.join(", ")),
        _ => String::new(),
    }
}

/// Which policies take a parameter, by default value.
fn users(parameter: &Parameter) -> String {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for entry in POLICIES {
        let own = entry.parameters.iter().find(|(own, _)| own.name == parameter.name);
        let Some(default) = own.map(|(_, default)| default.to_string()) else { continue };
        match groups.iter_mut().find(|(known, _)| *known == default) {
            Some((_, names)) => names.push(entry.name),
            None => groups.push((default, vec![entry.name])),
        }
    }
    let describe = |(default, names): &(String, Vec<&str>)| format!(" [default: {default} in {}]", names.join(", "));
    groups.iter().map(describe).collect()
}
