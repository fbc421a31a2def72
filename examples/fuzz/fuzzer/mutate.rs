//! Damage that knows the parts of a format, and damage to bytes.

use super::json;
use super::random::Random;
use super::render::{Content, Member, Npy, Safetensors};

/// The bytes of a damaged input.
pub fn damaged(sound: &Content, random: &mut Random) -> Vec<u8> {
    let mut content = sound.clone();
    let (in_parts, in_bytes) = match random.below(8) {
        0 => (0, 1 + random.below(3)),
        1 => (1, 1),
        _ => (random.below(4), 0),
    };
    (0..in_parts).for_each(|_| change(&mut content, random));
    let mut bytes = content.bytes();
    (0..in_bytes).for_each(|_| change_bytes(&mut bytes, random));
    bytes
}

fn change(content: &mut Content, random: &mut Random) {
    match content {
        Content::Lines(lines) => change_lines(lines, random),
        Content::Json(value) => json::change(value, random),
        Content::Safetensors(file) => change_safetensors(file, random),
        Content::Npy(array) => change_npy(array, random),
        Content::Npz(members) => change_members(members, random),
    }
}

fn change_lines(lines: &mut Vec<String>, random: &mut Random) {
    if lines.is_empty() {
        return;
    }
    let (at, other) = (random.below(lines.len()), random.below(lines.len()));
    match random.below(12) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(at, lines[other].clone()),
        2 => lines.swap(at, other),
        3 => lines.truncate(at),
        4 => lines[at] = String::new(),
        5..=7 => change_cell(&mut lines[at], random),
        _ => lines[at] = changed_line(&lines[at], random),
    }
}

/// Another number, or another value where the line is JSON.
fn changed_line(line: &str, random: &mut Random) -> String {
    if random.one_in(2)
        && let Ok(mut value) = serde_json::from_str(line)
    {
        json::change(&mut value, random);
        return value.to_string();
    }
    json::with_other_number(line, random).unwrap_or_else(|| line.to_owned())
}

/// Another text between two commas.
fn change_cell(line: &mut String, random: &mut Random) {
    let mut cells: Vec<&str> = line.split(',').collect();
    let at = random.below(cells.len());
    match random.below(4) {
        0 => drop(cells.remove(at)),
        1 => cells.insert(at, cells[at]),
        _ => cells[at] = json::edge(random),
    }
    *line = cells.join(",");
}

fn change_safetensors(file: &mut Safetensors, random: &mut Random) {
    if random.one_in(2) {
        json::change(&mut file.header, random);
    } else {
        change_numbers(&mut file.data, file.width, random);
    }
}

/// Other letters of types.
const OTHER_TYPES: &[&str] = &[">f", "|f", "=f", "<i", "<c", "<u"];

fn change_npy(array: &mut Npy, random: &mut Random) {
    match random.below(8) {
        0 => array.version = random.below(5) as u8,
        1 => array.header = array.header.replace("False", "True"),
        2 => array.header = array.header.replace("<f", OTHER_TYPES[random.below(OTHER_TYPES.len())]),
        3 | 4 => {
            if let Some(header) = json::with_other_number(&array.header, random) {
                array.header = header;
            }
        }
        _ => change_numbers(&mut array.data, array.width, random),
    }
}

fn change_members(members: &mut Vec<Member>, random: &mut Random) {
    if members.is_empty() {
        return;
    }
    let at = random.below(members.len());
    match random.below(10) {
        0 => drop(members.remove(at)),
        1 => members[at].deflated ^= true,
        2 => {
            let name = json::with_other_number(&members[at].name, random);
            members[at].name = name.unwrap_or_else(|| "x.npy".to_owned());
        }
        3 => {
            let mut copy = members[at].clone();
            copy.name = format!("copy_{}", copy.name);
            members.push(copy);
        }
        _ => change_npy(&mut members[at].array, random),
    }
}

/// Bit patterns of numbers, as f64, at the edges of what attention can be.
const NUMBERS: &[f64] = &[
    0.0,
    -0.0,
    1.0,
    0.5,
    -1.0,
    2.0,
    1e-20,
    1e-45,
    5e-324,
    2e19,
    1e5,
    65504.0,
    1e38,
    f32::MAX as f64,
    1e300,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
];

/// Replaces one number or a few, scales all of them, or changes how many there are.
fn change_numbers(data: &mut Vec<u8>, width: usize, random: &mut Random) {
    let count = data.len() / width.max(1);
    match random.below(12) {
        0 => data.truncate(random.below(data.len() + 1)),
        1 => data.extend_from_within(..random.below(data.len() + 1)),
        2 => data.chunks_mut(width).for_each(|number| number.copy_from_slice(&vec![0; number.len()])),
        3 => scale(data, width, *random.pick(&[1e-20, 2e19, 1e-3, 1e4])),
        _ if count == 0 => (),
        _ => {
            let at = random.below(count) * width;
            let run = if random.one_in(4) { 1 + random.below(8) } else { 1 };
            let bytes = stored(*random.pick(NUMBERS), width);
            let end = data.len().min(at + run * width) / width * width;
            data[at..end].chunks_exact_mut(width).for_each(|number| number.copy_from_slice(&bytes));
        }
    }
}

fn scale(data: &mut [u8], width: usize, factor: f64) {
    for number in data.chunks_exact_mut(width) {
        let value = match width {
            4 => f64::from(f32::from_le_bytes(number.try_into().expect("four bytes"))),
            8 => f64::from_be_bytes(number.try_into().expect("eight bytes")),
            _ => half::f16::from_le_bytes(number.try_into().expect("two bytes")).to_f64(),
        };
        number.copy_from_slice(&stored(value * factor, width));
    }
}

fn stored(number: f64, width: usize) -> Vec<u8> {
    match width {
        4 => (number as f32).to_le_bytes().to_vec(),
        8 => number.to_be_bytes().to_vec(),
        _ => half::f16::from_f64(number).to_le_bytes().to_vec(),
    }
}

fn change_bytes(bytes: &mut Vec<u8>, random: &mut Random) {
    if bytes.is_empty() {
        return;
    }
    let (at, other) = (random.below(bytes.len()), random.below(bytes.len()));
    let len = random.below(16).min(bytes.len() - at.max(other));
    match random.below(8) {
        0 => bytes.truncate(at),
        1 => drop(bytes.drain(at..at + len)),
        2 => bytes.extend_from_within(at..at + len),
        3 => bytes.copy_within(at..at + len, other),
        4 => bytes.insert(at, random.byte()),
        5 => bytes[at] ^= 1 << random.below(8),
        _ => bytes[at] = random.byte(),
    }
}
