//! `.npz`: a zip archive of npy arrays, one for each layer or one for all.
//!
//! Members that are stored are read where they lie; a compressed one is first inflated, to a temporary
//! file or, up to `max_memory`, in memory.

use super::npy::{self, header};
use super::options::ReadOptions;
use super::square::{Array, Dump, open as open_square};
use super::storage::{FileReader, SharedFile, Storage, copy_failed, new_copy};
use super::{Source, pickle};
use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;
use zip::read::ZipFile;
use zip::{CompressionMethod, ZipArchive};

type Archive = ZipArchive<BufReader<FileReader>>;
type Member<'a> = ZipFile<'a, BufReader<FileReader>>;

/// More members than any dump has.
const MAX_MEMBERS: usize = 1 << 16;

/// Opens an npz file.
///
/// # Errors
/// When it is no sound archive, a member is no sound array of floats, or they are no attention.
pub fn open(path: &Path, options: &ReadOptions) -> Result<Box<dyn Source>> {
    let file = path.display().to_string();
    let unsound = |error| Error::data(&file, format!("not a sound npz archive: {error}"));
    let shared = SharedFile::open(path)?;
    let mut archive = ZipArchive::new(BufReader::new(shared.reader(0))).map_err(unsound)?;
    check_archive(&archive).map_err(|problem| Error::data(&file, problem))?;
    announce_size(&mut archive, options);
    let mut dump = Dump {
        file: file.clone(),
        format: "npz",
        content: Storage::File(shared.clone()),
        arrays: Vec::new(),
        metadata: BTreeMap::new(),
        notes: Vec::new(),
    };
    for index in 0..archive.len() {
        let member = archive.by_index(index).map_err(unsound)?;
        let Some(name) = array_name(&member) else { continue };
        match describe(member, name.clone(), &shared, &file, options) {
            Ok(Found::Array(array)) => dump.arrays.push(array),
            Ok(Found::LeftOut(note)) => dump.notes.push(note),
            Err(problem) => return Err(Error::data(format!("{}: array {name:?}", dump.file), problem)),
        }
    }
    check_members(&dump, &archive)?;
    open_square(dump, options)
}

fn check_archive(archive: &Archive) -> Result<(), String> {
    if archive.has_duplicate_names() {
        return Err("two members have the same name: save each array under a name of its own".to_owned());
    }
    if archive.len() > MAX_MEMBERS {
        return Err(format!("{} members are more than any dump has", archive.len()));
    }
    Ok(())
}

/// What unpacks to more than this is said to do so before it does.
const LARGE: u64 = 1 << 30;

/// Says so first where the compressed members unpack to much; sizes that cannot be read are refused later.
fn announce_size(archive: &mut Archive, options: &ReadOptions) {
    let mut sizes = Vec::new();
    for index in 0..archive.len() {
        let Ok(member) = archive.by_index_raw(index) else { continue };
        if member.compression() != CompressionMethod::Stored {
            sizes.push([member.compressed_size(), member.size()]);
        }
    }
    let total = |which: usize| sizes.iter().map(|size| size[which]).fold(0, u64::saturating_add);
    if total(1) > LARGE {
        let [from, to] = [total(0), total(1)].map(|bytes| bytes as f64 / f64::from(1 << 20));
        let folder = std::env::temp_dir();
        let text = format!("{from:.1} MiB of compressed arrays unpack to {to:.0} MiB in {:?}", folder.display());
        options.announce(&text);
    }
}

/// An archive without arrays may be what torch saves.
fn check_members(dump: &Dump, archive: &Archive) -> Result<()> {
    if !dump.arrays.is_empty() {
        return Ok(());
    }
    let pickled = archive.file_names_raw().any(|name| name.ends_with(b".pkl"));
    let problem = match dump.notes.first() {
        _ if pickled => pickle::torch_file(&dump.file),
        Some(note) => format!("holds no attention: {note}"),
        None => "holds no array: expected npy members, as numpy.savez writes them".to_owned(),
    };
    Err(Error::data(&dump.file, problem))
}

fn array_name(member: &Member<'_>) -> Option<String> {
    let name = String::from_utf8_lossy(member.name_raw());
    name.strip_suffix(".npy").map(str::to_owned)
}

/// What a member turned out to be.
enum Found {
    Array(Array),
    /// A note on an array that is a companion of the attention.
    LeftOut(String),
}

fn describe(
    mut member: Member<'_>,
    name: String,
    shared: &SharedFile,
    file: &str,
    options: &ReadOptions,
) -> Result<Found, String> {
    let header = header::read(&mut member)?;
    if header.is_no_attention() {
        let (descr, shape) = (&header.descr, &header.shape);
        return Ok(Found::LeftOut(format!("array {name:?} is left out: {descr:?} of shape {shape:?} is no attention")));
    }
    let cells = header.cells(file, Some(&name))?;
    let needed = npy::check_len(&header, cells, member.size())?;
    let (storage, start) = match member.compression() {
        CompressionMethod::Stored => {
            let start = stored_start(&member, shared)? + header.len;
            // Read once for its checksum: rows are read later from where they stand.
            inflate(member, needed, &mut std::io::sink())?;
            (Storage::File(shared.clone()), start)
        }
        _ if options.max_memory.is_some_and(|most| needed <= most) => (inflate_to_memory(member, needed)?, 0),
        _ => (inflate_to_copy(member, needed)?, 0),
    };
    Ok(Found::Array(npy::array(&header, name, cells, storage, start)))
}

/// Where a stored member starts, once it is sure that the file goes on to its end.
fn stored_start(member: &Member<'_>, file: &SharedFile) -> Result<u64, String> {
    let start = member.data_start().ok_or("the archive does not say where it starts")?;
    let len = file.len().map_err(|error| error.to_string())?;
    match start.checked_add(member.size()) {
        Some(end) if end <= len && member.compressed_size() == member.size() => Ok(start),
        _ => Err(format!("truncated: {} bytes from byte {start} on, the file has {len}", member.size())),
    }
}

/// Inflates what follows the header; what is held grows with what is there, not with what is claimed.
fn inflate_to_memory(member: Member<'_>, needed: u64) -> Result<Storage, String> {
    let mut bytes = Vec::new();
    inflate(member, needed, &mut bytes)?;
    Ok(Storage::Memory(bytes.into()))
}

fn inflate_to_copy(member: Member<'_>, needed: u64) -> Result<Storage, String> {
    let copy = new_copy().map_err(|error| error.to_string())?;
    let mut out = BufWriter::new(&copy);
    inflate(member, needed, &mut out)?;
    out.flush().map_err(|error| copy_failed(&error).to_string())?;
    drop(out);
    Ok(Storage::File(copy.into()))
}

/// Copies all there is, and says whether reading failed or writing.
fn copy(from: &mut dyn Read, to: &mut dyn Write) -> Result<u64, String> {
    let (mut buffer, mut copied) = (vec![0; 1 << 16], 0);
    loop {
        let read = from.read(&mut buffer).map_err(|error| format!("damaged: {error}"))?;
        if read == 0 {
            return Ok(copied);
        }
        to.write_all(&buffer[..read]).map_err(|error| copy_failed(&error).to_string())?;
        copied += read as u64;
    }
}

fn inflate(mut member: Member<'_>, needed: u64, out: &mut dyn Write) -> Result<(), String> {
    let unsound = |error: std::io::Error| format!("damaged: {error}");
    let found = copy(&mut (&mut member).take(needed), out)?;
    // One byte more than there should be: at the end, and only there, the checksum is compared.
    let more = member.read(&mut [0]).map_err(unsound)?;
    if found == needed && more == 0 {
        return Ok(());
    }
    Err(format!("damaged: the array needs {needed} bytes, the member has {}", if more > 0 { "more" } else { "fewer" }))
}
