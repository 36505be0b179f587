//! The connector string: `under_vol=0;under_info={};limit=1GiB`.
//!
//! | key | |
//! |---|---|
//! | `under_vol` | the connector below: its number or its name; without it, the native one |
//! | `under_info` | its string, in braces |
//! | `limit` | bytes of a file that may be copied and not written; 0: the program keeps its buffers |
//! | `behind` | writes of at least so many bytes go on behind the program |
//! | `lend` | `yes`: a limit of 0 holds in a Python program, too |
//!
//! Bytes are a number, or one with a unit such as `MiB` or `GB`. Without a limit, that of the
//! environment variable `ALONGSIDE_HDF5_LIMIT` holds, and without that [`LIMIT_BYTES`].
//!
//! Python programs do not say when buffers are freed that their libraries made: h5py writes a copy
//! of a slice, and frees it when the call returns. There a limit of 0 is not taken by itself.

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::sync::{Once, OnceLock};

use crate::abi::{Id, Ptr, Status, Text, DEFAULT, DONE, FAILED, MEMORY_DATA, NATIVE_CONNECTOR};
use crate::library::{self, Library};
use crate::{errors, python, stack};
use runtime::storage::parse_bytes;

/// Bytes that are copied and not written of one file, at most, unless the program says otherwise.
pub const LIMIT_BYTES: usize = 1 << 30;

/// Writes from this size on go behind the program, unless it says otherwise.
const BEHIND_BYTES: usize = 64 << 10;
/// HDF5 writes metadata when it is told to flush or close, and that waits for them in any case.
const BEHIND_METADATA_BYTES: usize = 1 << 20;

/// What is said where buffers are not lent.
const NOT_LENT: &str = "a limit of 0 is not taken from a Python program, whose libraries write \
    arrays that they made and free at once: what is written is copied, up to 1 GiB a file \
    (alongside.hdf5.enabled(limit=0, lend=True) says that no such array is written)";

/// The environment variable of the limit.
const LIMIT: &str = "ALONGSIDE_HDF5_LIMIT";

/// How a file is written; `None`: as is usual.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Settings {
    limit_bytes: Option<usize>,
    behind_bytes: Option<usize>,
    /// Buffers are lent also where a Python program writes them.
    lends_in_python: bool,
    /// The connector string could not be read: no file can be opened with it.
    is_unreadable: bool,
}

impl Settings {
    /// Bytes that may be copied and not written.
    pub fn limit_bytes(&self) -> usize {
        let environment = || limit_of_the_environment().ok().flatten();
        match self.limit_bytes.or_else(environment).unwrap_or(LIMIT_BYTES) {
            0 if !self.lends_in_python && python::is_running() => {
                static SAID: Once = Once::new();
                SAID.call_once(|| errors::say(NOT_LENT));
                LIMIT_BYTES
            }
            limit => limit,
        }
    }

    /// Why no file can be opened with these; `None`: they can be used.
    pub fn refusal(&self) -> Option<&'static str> {
        if self.is_unreadable {
            return Some("the connector string cannot be read");
        }
        let is_needed = self.limit_bytes.is_none();
        (is_needed && limit_of_the_environment().is_err())
            .then_some("ALONGSIDE_HDF5_LIMIT cannot be read")
    }

    /// Whether the program says from which size on writes go behind it.
    pub fn is_behind_asked_for(&self) -> bool {
        self.behind_bytes.is_some()
    }

    /// The size from which on writes of this kind of memory go behind the program.
    pub fn behind_bytes(&self, kind: c_int) -> usize {
        let usual = if kind == MEMORY_DATA { BEHIND_BYTES } else { BEHIND_METADATA_BYTES };
        self.behind_bytes.unwrap_or(usual)
    }
}

/// What a list of access properties carries for us.
pub struct Info {
    /// The connector below; its id is held.
    connector: Id,
    /// What it needs to know.
    info: Ptr,
    settings: Settings,
}

/// The connector below, with an id that somebody has to give back.
pub struct Below {
    pub connector: Id,
    pub info: Ptr,
    pub settings: Settings,
    pub is_native: bool,
}

impl Info {
    /// What a list says, or the native connector.
    ///
    /// # Safety
    ///
    /// `info` is null or ours.
    pub unsafe fn below_or_native(info: *const Info, library: &Library) -> Below {
        let symbols = &library.symbols;
        // SAFETY: the caller promised; the rest are ids.
        unsafe {
            let native = (symbols.connector_by_value)(NATIVE_CONNECTOR);
            let Some(info) = info.as_ref() else {
                let (info, settings) = (std::ptr::null_mut(), Settings::default());
                return Below { connector: native, info, settings, is_native: true };
            };
            let mut order = 1;
            (symbols.compare_connectors)(&raw mut order, info.connector, native);
            (symbols.drop_id)(native);
            (symbols.keep_id)(info.connector);
            let Info { connector, info, settings } = *info;
            Below { connector, info, settings, is_native: order == 0 }
        }
    }
}

/// It could not be read, and why was said.
#[derive(Clone, Copy)]
struct Unreadable;

/// The limit that the environment sets; why it cannot be read is said once.
fn limit_of_the_environment() -> Result<Option<usize>, Unreadable> {
    static FOUND: OnceLock<Result<Option<usize>, Unreadable>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let Some(text) = std::env::var(LIMIT).ok().filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        bytes(&text).map(Some).map_err(|why| {
            errors::say(&format!("{LIMIT} cannot be read: {why}"));
            Unreadable
        })
    })
}

/// A number of bytes.
fn bytes(text: &str) -> Result<usize, String> {
    let bytes = parse_bytes(text)?;
    usize::try_from(bytes).map_err(|_| format!("\"{text}\" is more than fits into memory"))
}

/// What a connector string says.
#[derive(Debug, Default, PartialEq)]
struct Said<'a> {
    connector: Option<&'a str>,
    info: Option<&'a str>,
    settings: Settings,
}

fn parse(text: &str) -> Result<Said<'_>, String> {
    let mut said = Said::default();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (key, after) =
            rest.split_once('=').ok_or_else(|| format!("\"{rest}\" is no key=value"))?;
        let (value, after) = match after.strip_prefix('{') {
            Some(inside) => {
                let end = end_of_braces(inside).ok_or("a { has no }")?;
                (&inside[..end], after_brace(&inside[end + 1..]))
            }
            None => after.split_once(';').unwrap_or((after, "")),
        };
        match key.trim() {
            "under_vol" => said.connector = Some(value.trim()),
            "under_info" => said.info = Some(value),
            key @ ("limit" | "behind") => {
                let said_bytes = bytes(value).map_err(|why| format!("{key}: {why}"))?;
                match key {
                    "limit" => said.settings.limit_bytes = Some(said_bytes),
                    _ => said.settings.behind_bytes = Some(said_bytes),
                }
            }
            "lend" if value.trim() == "yes" => said.settings.lends_in_python = true,
            "lend" => return Err(format!("lend: \"{value}\" is not yes")),
            key => {
                let known = "under_vol, under_info, limit, behind, lend";
                return Err(format!("there is no key \"{key}\": {known}"));
            }
        }
        rest = after.trim();
    }
    Ok(said)
}

/// What stands after a brace that is closed. HDF5's own pass-through connector, and those that were
/// made from it, end the string for the connector below one byte too late: a stray last letter
/// says nothing.
fn after_brace(text: &str) -> &str {
    match text.strip_prefix(';') {
        Some(rest) => rest,
        None if text.chars().count() <= 1 => "",
        None => text,
    }
}

/// Where the brace is closed that was opened before `text`.
fn end_of_braces(text: &str) -> Option<usize> {
    let mut depth = 1;
    for (at, letter) in text.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

pub unsafe extern "C" fn copy<const SLOT: usize>(info: *const c_void) -> Ptr {
    let symbols = &library::get::<SLOT>().symbols;
    // SAFETY: HDF5 passes what we made, or null.
    unsafe {
        let Some(info) = info.cast::<Info>().as_ref() else { return std::ptr::null_mut() };
        (symbols.keep_id)(info.connector);
        let mut copy = Info { connector: info.connector, info: info.info, settings: info.settings };
        if !info.info.is_null() {
            copy.info = std::ptr::null_mut();
            (symbols.copy_info)(info.connector, &raw mut copy.info, info.info);
        }
        Box::into_raw(Box::new(copy)).cast()
    }
}

pub unsafe extern "C" fn compare<const SLOT: usize>(
    order: *mut c_int,
    one: *const c_void,
    other: *const c_void,
) -> Status {
    let symbols = &library::get::<SLOT>().symbols;
    // SAFETY: HDF5 passes two of what we made, and wants the order there.
    unsafe {
        let (one, other) = (&*one.cast::<Info>(), &*other.cast::<Info>());
        *order = 0;
        if (symbols.compare_connectors)(order, one.connector, other.connector) < 0 {
            return FAILED;
        }
        if *order == 0 {
            let (below, one, other) = (one.connector, one.info, other.info);
            if (symbols.compare_info)(order, below, one, other) < 0 {
                return FAILED;
            }
        }
        if *order == 0 {
            *order = one.settings.cmp(&other.settings) as c_int;
        }
        DONE
    }
}

pub unsafe extern "C" fn free<const SLOT: usize>(info: Ptr) -> Status {
    let library = library::get::<SLOT>();
    if info.is_null() {
        return DONE;
    }
    // SAFETY: HDF5 passes what we made, and forgets it.
    let info = unsafe { Box::from_raw(info.cast::<Info>()) };
    // SAFETY: the connector's own, and the id that was kept.
    stack::keep(library, || unsafe {
        if !info.info.is_null() {
            (library.symbols.free_info)(info.connector, info.info);
        }
        (library.symbols.drop_id)(info.connector);
    });
    DONE
}

pub unsafe extern "C" fn to_text<const SLOT: usize>(
    info: *const c_void,
    text: *mut *mut c_char,
) -> Status {
    let symbols = &library::get::<SLOT>().symbols;
    // SAFETY: HDF5 passes what we made, or null, and wants the text there, in its memory.
    unsafe {
        *text = std::ptr::null_mut();
        let Some(info) = info.cast::<Info>().as_ref() else { return DONE };
        let mut inner: *mut c_char = std::ptr::null_mut();
        if !info.info.is_null() {
            (symbols.info_to_text)(info.info, info.connector, &raw mut inner);
        }
        let below = match inner.is_null() {
            true => String::new(),
            false => CStr::from_ptr(inner).to_string_lossy().into_owned(),
        };
        (symbols.free_memory)(inner.cast());
        let Settings { limit_bytes, behind_bytes, lends_in_python, .. } = info.settings;
        let said = |key, bytes: Option<usize>| {
            bytes.map(|bytes| format!("{key}={bytes};")).unwrap_or_default()
        };
        let lend = if lends_in_python { "lend=yes;" } else { "" };
        let settings = said("limit", limit_bytes) + &said("behind", behind_bytes) + lend;
        let mut value = 0;
        (symbols.connector_value)(info.connector, &raw mut value);
        let said = format!("{settings}under_vol={value};under_info={{{below}}}");
        let said = CString::new(said).unwrap_or_default();
        let bytes = said.as_bytes_with_nul();
        let copy = (symbols.allocate)(bytes.len(), false).cast::<u8>();
        if copy.is_null() {
            return FAILED;
        }
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), copy, bytes.len());
        *text = copy.cast();
        DONE
    }
}

pub unsafe extern "C" fn from_text<const SLOT: usize>(text: Text, info: *mut Ptr) -> Status {
    let library = library::get::<SLOT>();
    let text = match text.is_null() {
        true => String::new(),
        // SAFETY: HDF5's text.
        false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
    };
    // SAFETY: as of `of_said`.
    let made = parse(&text).and_then(|said| unsafe { of_said(library, &said) });
    let made = made.unwrap_or_else(|why| {
        errors::say(&format!("the connector string \"{text}\" cannot be read: {why}"));
        // HDF5 reads its environment while it starts, and does not survive a refusal there in all
        // versions: it is every opening of a file that is refused.
        let settings = Settings { is_unreadable: true, ..Settings::default() };
        // SAFETY: a number.
        let connector = unsafe { (library.symbols.connector_by_value)(NATIVE_CONNECTOR) };
        Info { connector, info: std::ptr::null_mut(), settings }
    });
    // SAFETY: HDF5 wants it there.
    unsafe { *info = Box::into_raw(Box::new(made)).cast() };
    DONE
}

/// Finds the connector below.
unsafe fn of_said(library: &Library, said: &Said<'_>) -> Result<Info, String> {
    let symbols = &library.symbols;
    let name = said.connector.unwrap_or("0");
    let c_name = CString::new(name).map_err(|_| "a zero byte")?;
    // SAFETY: a number or a text of ours.
    let register = || unsafe {
        match name.parse() {
            Ok(value) => (symbols.register_connector)(value, DEFAULT),
            Err(_) => (symbols.register_connector_by_name)(c_name.as_ptr(), DEFAULT),
        }
    };
    let connector = stack::quietly(library, register);
    if connector < 0 {
        return Err(format!("there is no connector under_vol={name}"));
    }
    let mut info = std::ptr::null_mut();
    if let Some(inner) = said.info.filter(|inner| !inner.is_empty()) {
        let inner = CString::new(inner).map_err(|_| "a zero byte")?;
        // SAFETY: a text of ours.
        let make = || unsafe { (symbols.info_from_text)(inner.as_ptr(), connector, &raw mut info) };
        if stack::quietly(library, make) < 0 {
            // SAFETY: the id that was made above.
            stack::keep(library, || unsafe { (symbols.drop_id)(connector) });
            return Err(format!("under_vol={name} does not take its under_info"));
        }
    }
    Ok(Info { connector, info, settings: said.settings })
}

#[cfg(test)]
mod tests {
    use super::{parse, Said, Settings, MEMORY_DATA};

    #[test]
    fn a_string_says_what_is_below_and_the_settings() {
        let settings =
            Settings { limit_bytes: Some(2_000_000), behind_bytes: Some(1), ..Settings::default() };
        let (connector, info) = (Some("0"), Some("under_vol=0;under_info={}"));
        let wanted = Ok(Said { connector, info, settings });
        for text in [
            "limit=2MB;behind=1;under_vol=0;under_info={under_vol=0;under_info={}}",
            " under_vol=0;under_info={under_vol=0;under_info={}};limit=2MB;behind=1; ",
        ] {
            assert_eq!(parse(text), wanted);
        }
    }

    #[test]
    fn metadata_go_behind_the_program_only_if_there_is_much_of_it_or_it_is_said() {
        let sizes = |settings: Settings| [MEMORY_DATA, 0].map(|kind| settings.behind_bytes(kind));
        assert_eq!(sizes(Settings::default()), [64 << 10, 1 << 20]);
        let all = Settings { behind_bytes: Some(1), ..Settings::default() };
        assert_eq!(sizes(all), [1, 1]);
    }

    #[test]
    fn one_stray_letter_after_a_closed_brace_says_nothing() {
        let wanted = parse("under_vol=0;under_info={}");
        assert!(wanted.is_ok());
        assert_eq!(parse("under_vol=0;under_info={}\u{fffd}"), wanted);
        assert_eq!(parse("under_vol=0;under_info={}x"), wanted);
        for text in ["under_vol=0;under_info={}xy", "behind=1x", "x"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
