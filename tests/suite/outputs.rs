//! Where reports and files go: formats by ending, links, permissions, pipes that close, devices that are
//! full, several commands that write one document, terminals that are narrow.

use crate::common::binary::{PACKAGE, command, kvsim, kvsim_in};
use crate::common::files::Folder;
use std::process::Stdio;

const SMALL: &str = "traces/smollm2-prose-512.safetensors";

#[test]
fn the_ending_of_the_output_chooses_the_format() {
    let folder = Folder::new();
    let run = |more: &[&str]| kvsim(&[&["replay", SMALL, "--policy", "tova,h2o", "--budget", "64"], more].concat());
    for (name, format) in
        [("r.csv", "csv"), ("r.json", "json"), ("r.jsonl", "jsonl"), ("r.md", "markdown"), ("r.TXT", "table")]
    {
        run(&["-o", &folder.at(name)]).report();
        assert_eq!(folder.read(name), run(&["--format", format]).report(), "{name}");
    }
    let unknown = folder.at("r.html");
    run(&["-o", &unknown])
        .refuses(2, &["r.html\": its ending names no format (.txt, .csv, .json, .jsonl, .md): add --format"]);
    run(&["-o", &folder.at("report")]).refuses(2, &["add --format"]);
    run(&["-o", &unknown, "--format", "csv"]).report();
    assert_eq!(folder.read("r.html"), folder.read("r.csv"));
    assert_eq!(run(&["-o", "-"]).report(), folder.read("r.csv"));
    let table = ["table", &*folder.at("r.csv"), "-o"].map(str::to_owned);
    let table = |name: &str| kvsim(&[&table[..], &[folder.at(name)]].concat());
    table("t.html").refuses(2, &["add --format"]);
    table("r.csv").refuses(2, &["choose another name"]);
}

#[test]
fn an_output_that_is_an_input_is_refused_by_every_command() {
    let folder = Folder::new();
    folder.write("t.jsonl", "{\"step\":1,\"attn\":[1]}\n");
    folder.write("t.json", "{\"0\": 1}");
    folder.write("r.csv", "policy,budget,retained_mass,heavy_recall\nh2o,64,0.5,0.5\n");
    let before = folder.names().iter().map(|name| folder.read(name)).collect::<Vec<_>>();
    let commands: &[&[&str]] = &[
        &["convert", "t.jsonl", "-o", "t.jsonl"],
        &["convert", "t.jsonl", "-o", "./t.jsonl"],
        &["replay", "t.jsonl", "--policy", "tova", "--budget", "1", "--layer-budget", "t.json", "-o", "t.json"],
        &["table", "r.csv", "-o", "r.csv"],
        &["table", "r.csv", "--into", "r.csv", "--block", "b"],
        &["analyze", "t.jsonl", "-o", "t.jsonl"],
    ];
    for args in commands {
        kvsim_in(folder.path(), args).refuses(2, &["choose another name for the output"]);
    }
    assert_eq!(folder.names().iter().map(|name| folder.read(name)).collect::<Vec<_>>(), before);
}

#[cfg(unix)]
#[test]
fn a_replaced_file_keeps_its_permissions_and_a_link_keeps_leading_where_it_does() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = Folder::new();
    let run = |name: &str| kvsim(&["replay", SMALL, "--policy", "tova", "--budget", "64", "-o", &folder.at(name)]);
    let mode = |name: &str| std::fs::metadata(folder.path().join(name)).expect("there").permissions().mode() & 0o777;
    for wanted in [0o600, 0o640, 0o666] {
        folder.write("r.csv", "older");
        let private = std::fs::Permissions::from_mode(wanted);
        std::fs::set_permissions(folder.path().join("r.csv"), private).expect("the test may");
        run("r.csv").report();
        assert_eq!(mode("r.csv"), wanted);
    }
    let link = |to: &str, name: &str| symlink(to, folder.path().join(name)).expect("the test may");
    let is_link = |name: &str| folder.path().join(name).symlink_metadata().expect("there").file_type().is_symlink();
    std::fs::create_dir(folder.path().join("sub")).expect("made");
    link("sub/new.csv", "dangling.csv");
    run("dangling.csv").report();
    assert_eq!(folder.read("sub/new.csv"), folder.read("r.csv"), "a link is followed to where nothing is yet");
    assert!(is_link("dangling.csv"));
    folder.write("sub/new.csv", "older");
    run("dangling.csv").report();
    assert!(is_link("dangling.csv") && folder.read("sub/new.csv") == folder.read("r.csv"));
    link("b.csv", "a.csv");
    link("a.csv", "b.csv");
    run("a.csv").refuses(1, &["a link that leads in a circle"]);
    link("no/such/folder.csv", "nowhere.csv");
    run("nowhere.csv").refuses(1, &["cannot write"]);
    assert!(is_link("a.csv") && is_link("nowhere.csv"));
}

#[test]
fn a_reader_who_leaves_is_no_error_for_any_output() {
    let folder = Folder::new();
    let file = folder.at("r.csv");
    let commands: &[&[&str]] = &[
        &["generate", "decode-4096", "-o", "-"],
        &["convert", SMALL, "-o", "-"],
        &["replay", SMALL, "--policy", "tova", "--budget", "1..300", "--format", "json", "-o", "-"],
        &["replay", SMALL, "--policy", "tova", "--budget", "1..20", "--per-step", "-", "-o", &file],
        &["analyze", SMALL, "--no-advice", "-o", "-"],
        &["--help"],
    ];
    for args in commands {
        let mut child = command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), said.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_device_is_an_error_for_help_and_version_too() {
    for args in [&["--help"][..], &["replay", "--help"], &["--version"], &["policies"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("a device of Linux");
        let output = command(args).stdout(full).stderr(Stdio::piped()).spawn().expect("it starts");
        let output = output.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
        assert!(said.starts_with("error: ") && said.contains("No space left"), "{args:?}: {said}");
    }
}

#[test]
fn commands_that_write_blocks_of_one_document_at_once_lose_none() {
    let folder = Folder::new();
    const BLOCKS: usize = 8;
    let block = |at: usize| format!("<!-- kvsim:begin b{at} -->\n<!-- kvsim:end b{at} -->\n");
    folder.write("doc.md", (0..BLOCKS).map(block).collect::<String>());
    let results = |at: usize| format!("policy,budget,retained_mass,heavy_recall\nh2o,64,0.5,0.{at}1\n");
    let start = |at: usize| {
        let (name, block) = (format!("r{at}.csv"), format!("b{at}"));
        folder.write(&name, results(at));
        let args = ["table", &name, "--into", "doc.md", "--block", &block];
        command(&args).current_dir(folder.path()).spawn().expect("it starts")
    };
    let children: Vec<_> = (0..BLOCKS).map(start).collect();
    for mut child in children {
        assert!(child.wait().expect("it ends").success());
    }
    let document = folder.read("doc.md");
    assert!((0..BLOCKS).all(|at| document.contains(&format!("0.{at}10000"))), "{document}");
}

#[test]
fn a_narrow_terminal_gets_fewer_columns_and_is_told_which() {
    let args = ["replay", SMALL, "--policy", "tova,h2o,snapkv", "--budget", "64", "--format", "table"];
    let at = |width: &str| {
        let output = command(&args).current_dir(PACKAGE).env("COLUMNS", width).output().expect("it starts");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        (text(output.stdout), text(output.stderr))
    };
    let (wide, silence) = at("500");
    assert_eq!(silence, "");
    assert_eq!(wide, kvsim(&args).report(), "a pipe has no width");
    let (narrow, said) = at("80");
    assert!(narrow.lines().all(|line| line.chars().count() <= 80) && narrow.lines().count() == 4, "{narrow}");
    assert!(narrow.starts_with("policy  budget  retained_mass  retained_mass_full  peak_miss_rate"), "{narrow}");
    assert!(said.starts_with("note: left out to fit the terminal: recent_window, obs_window, pool_kernel, "), "{said}");
    let (narrowest, _) = at("30");
    assert!(narrowest.lines().all(|line| line.chars().count() <= 30), "{narrowest}");
}

#[test]
fn raw_sums_are_shown_to_people_who_ask() {
    let run =
        |more: &[&str]| kvsim(&[&["replay", SMALL, "--policy", "tova", "--budget", "64"], more].concat()).report();
    let plain = run(&["--format", "markdown"]);
    assert!(!plain.contains("retained_mass_sum") && !plain.contains("recent_window"), "{plain}");
    let sums = run(&["--format", "markdown", "--sums"]);
    assert!(sums.contains("| retained_mass_sum ") && sums.contains("| state_bytes "), "{sums}");
    assert_eq!(run(&["--sums"]), run(&[]), "csv always has them");
}
