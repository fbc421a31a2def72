//! `.npz`: a zip archive of npy arrays, one for each layer or one for all.
//!
//! Members that are stored are read where they lie; compressed ones are first inflated, to one temporary
//! file or, up to `max_memory`, in memory.

use super::npy;
use super::npy::header::{self, Header};
use super::options::ReadOptions;
use super::square::{Cells, Dump, LeftOut, open as open_square};
use super::storage::{FileReader, SharedFile, Storage, copy_failed, new_copy};
use super::{Source, pickle};
use crate::error::{Error, Result};
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::sync::Arc;
use zip::read::ZipFile;
use zip::{CompressionMethod, ZipArchive};

type Archive = ZipArchive<BufReader<FileReader>>;
type Member<'a> = ZipFile<'a, BufReader<FileReader>>;

/// More members than any dump has.
const MAX_MEMBERS: usize = 1 << 16;

/// Opens an npz file.
///
/// # Errors
/// When it is not a sound archive, a member is not a sound array of floats, or they are not attention.
pub fn open(path: &Path, options: &ReadOptions) -> Result<Box<dyn Source>> {
    open_square(dump(path, options)?, options)
}

/// Refuses an archive whose end is missing, as after a broken copy.
///
/// # Errors
/// When the directory of the members, which is at the end, is not there.
pub(super) fn check_whole(path: &Path) -> Result<()> {
    let file = SharedFile::open(path)?;
    let failed = |error| Error::io(path, error);
    let len = file.len().map_err(failed)?;
    // The end of the directory and the longest comment that may follow it.
    let tail = len.min(22 + (1 << 16));
    let mut bytes = Vec::new();
    file.reader(len - tail).take(tail).read_to_end(&mut bytes).map_err(failed)?;
    match bytes.windows(4).any(|four| four == b"PK\x05\x06") {
        true => Ok(()),
        false => Err(Error::data(
            path.display().to_string(),
            format!("not a sound npz archive: cut short after {len} bytes, its directory is missing: copy it again"),
        )),
    }
}

/// The arrays of an npz file.
///
/// # Errors
/// When it is not a sound archive, or a member is not a sound array of floats.
pub(super) fn dump(path: &Path, options: &ReadOptions) -> Result<Dump> {
    let file = path.display().to_string();
    let unsound = |error| Error::data(&file, format!("not a sound npz archive: {error}"));
    let shared = SharedFile::open(path)?;
    let mut archive = ZipArchive::new(BufReader::new(shared.reader(0))).map_err(unsound)?;
    check_archive(&archive).map_err(|problem| Error::data(&file, problem))?;
    announce_size(&mut archive, options);
    let (mut found, mut copy) = (Vec::new(), None);
    for index in 0..archive.len() {
        let member = archive.by_index(index).map_err(unsound)?;
        let Some(name) = array_name(&member) else { continue };
        let member = describe(member, name.clone(), &shared, &file, options, &mut copy)
            .map_err(|problem| Error::data(format!("{file}: array {name:?}"), problem))?;
        found.push(member);
    }
    check_members(&file, &found, &archive)?;
    Ok(into_dump(file, shared, found, copy))
}

/// The members as arrays: those that lie in the same bytes share them.
fn into_dump(file: String, shared: SharedFile, found: Vec<Found>, copy: Option<Copied>) -> Dump {
    let content = Storage::File(shared);
    let in_file = Arc::new(content.clone());
    let in_copy = copy.map(|copy| Arc::new(Storage::File(copy.file.into())));
    let mut dump = Dump { file, format: "npz", content: vec![content], ..Dump::default() };
    for found in found {
        match found {
            Found::Array(header, name, cells, place) => {
                let (storage, start) = match place {
                    Place::Archive(start) => (Arc::clone(&in_file), start),
                    Place::Copy(start) => (Arc::clone(in_copy.as_ref().unwrap_or(&in_file)), start),
                    Place::Memory(bytes) => (Arc::new(Storage::Memory(bytes.into())), 0),
                };
                dump.arrays.push(npy::array(&header, name, cells, &storage, start));
            }
            Found::LeftOut(left_out) => dump.left_out.push(left_out),
        }
    }
    dump
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
fn check_members(file: &str, found: &[Found], archive: &Archive) -> Result<()> {
    let left_out = |found: &Found| match found {
        Found::LeftOut(left_out) => Some((left_out.name.clone(), left_out.why.clone())),
        Found::Array(..) => None,
    };
    if found.iter().any(|found| left_out(found).is_none()) {
        return Ok(());
    }
    let pickled = archive.file_names_raw().any(|name| name.ends_with(b".pkl"));
    let problem = match found.iter().find_map(left_out) {
        _ if pickled => pickle::torch_file(file),
        Some((name, why)) if why == PICKLED => pickle::object_array(file, Some(&name)),
        Some((name, why)) => format!("holds no attention: array {name:?} is left out: {why}"),
        None => "holds no array: expected npy members, as numpy.savez writes them".to_owned(),
    };
    Err(Error::data(file, problem))
}

/// The array's name, of members that are arrays; what archivers of other systems add is none.
fn array_name(member: &Member<'_>) -> Option<String> {
    let name = String::from_utf8_lossy(member.name_raw()).into_owned();
    let added = name.starts_with("__MACOSX/") || name.rsplit('/').next().is_some_and(|last| last.starts_with("._"));
    name.strip_suffix(".npy").filter(|_| !added).map(str::to_owned)
}

/// What a member turned out to be.
enum Found {
    Array(Header, String, Cells, Place),
    /// A companion of the attention.
    LeftOut(LeftOut),
}

/// Where an array's bytes are.
enum Place {
    /// In the archive, from this byte on.
    Archive(u64),
    /// In the copy that all inflated members share, from this byte on.
    Copy(u64),
    Memory(Vec<u8>),
}

/// Inflated members, one after the other.
struct Copied {
    file: File,
    len: u64,
}

/// What is said of arrays of objects.
const PICKLED: &str = "pickled objects, which are never read";

fn describe(
    mut member: Member<'_>,
    name: String,
    shared: &SharedFile,
    file: &str,
    options: &ReadOptions,
    copy: &mut Option<Copied>,
) -> Result<Found, String> {
    let header = header::read(&mut member)?;
    if header.is_pickled() {
        return Ok(Found::LeftOut(LeftOut { name, why: PICKLED.to_owned() }));
    }
    if header.is_no_attention() {
        let why = format!("{:?} of shape {:?} is not attention", header.descr, header.shape);
        return Ok(Found::LeftOut(LeftOut { name, why }));
    }
    let cells = header.cells(file, Some(&name))?;
    let needed = npy::check_len(&header, cells, member.size())?;
    let place = match member.compression() {
        CompressionMethod::Stored => {
            let start = stored_start(&member, shared)? + header.len;
            // Read once for its checksum: rows are read later from where they stand.
            inflate(member, needed, &mut std::io::sink())?;
            Place::Archive(start)
        }
        _ if options.max_memory.is_some_and(|most| needed <= most) => inflate_to_memory(member, needed)?,
        _ => inflate_to_copy(member, needed, copy)?,
    };
    Ok(Found::Array(header, name, cells, place))
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
fn inflate_to_memory(member: Member<'_>, needed: u64) -> Result<Place, String> {
    let mut bytes = Vec::new();
    inflate(member, needed, &mut bytes)?;
    Ok(Place::Memory(bytes))
}

fn inflate_to_copy(member: Member<'_>, needed: u64, copy: &mut Option<Copied>) -> Result<Place, String> {
    let copy = match copy {
        Some(copy) => copy,
        None => copy.insert(Copied { file: new_copy().map_err(|error| error.to_string())?, len: 0 }),
    };
    let mut out = BufWriter::new(&copy.file);
    inflate(member, needed, &mut out)?;
    out.flush().map_err(|error| copy_failed(&error).to_string())?;
    drop(out);
    let start = copy.len;
    copy.len += needed;
    Ok(Place::Copy(start))
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
