//! What HDF5 and a plugin agree on: types, numbers and layouts of 1.14 to 2.2 (`H5VL_VERSION` 3).
//!
//! Only what the connector looks into is spelled out; the rest are pointers that are passed on.

use std::ffi::{c_char, c_int, c_uint, c_ulong, c_void};

/// `hid_t`.
pub type Id = i64;

/// A list of access properties that a call passes for the links that it follows.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Access(pub Id);
/// `herr_t`: negative is a failure.
pub type Status = c_int;
/// Somebody's object, argument block, or buffer.
pub type Ptr = *mut c_void;
/// `void **req`: where a request may be put; null if nobody wants one.
pub type Req = *mut *mut c_void;
/// `haddr_t`.
pub type Address = u64;
/// A C string.
pub type Text = *const c_char;

pub const FAILED: Status = -1;
pub const DONE: Status = 0;
pub const NO_ID: Id = -1;
pub const DEFAULT: Id = 0;

pub const PLUGIN_TYPE_VOL: c_int = 1;
pub const VOL_VERSION: c_uint = 3;
pub const DRIVER_VERSION: c_uint = 1;
pub const NATIVE_CONNECTOR: c_int = 0;

/// `H5VL_CAP_FLAG_THREADSAFE` is not among them: HDF5 decides that.
pub const CAPABILITY_ASYNC: u64 = 0x2;

/// `H5F_ACC_RDWR`.
pub const ACCESS_WRITE: c_uint = 0x1;
/// `H5F_ACC_SWMR_WRITE`, `H5F_ACC_SWMR_READ`.
pub const ACCESS_SWMR: c_uint = 0x20 | 0x40;

/// `H5VL_loc_params_t`, as far as it is looked into.
#[repr(C)]
pub struct Location {
    pub object_type: c_int,
    pub kind: c_int,
    /// Of `LOCATION_BY_NAME`: the name, and the list for the links that lead there.
    pub name: Text,
    pub access: Id,
}
pub const LOCATION_SELF: c_int = 0;
pub const LOCATION_BY_NAME: c_int = 1;

/// `H5S_ALL`: the space of the dataset, or of the other side.
pub const SPACE_ALL: Id = 0;
/// From this number on an id is of a space, and not one of HDF5's constants.
pub const SPACE_MIN: Id = 16;

/// `H5VL_dataset_get_args_t` of what is an id.
#[repr(C)]
pub struct DatasetGetArgs {
    pub operation: c_int,
    pub id: Id,
}
pub const DATASET_GET_ACCESS_LIST: c_int = 0;
pub const DATASET_GET_CREATION_LIST: c_int = 1;
pub const DATASET_GET_SPACE: c_int = 2;
pub const DATASET_GET_TYPE: c_int = 5;

/// `H5VL_object_get_args_t` of `H5Oget_info`.
#[repr(C)]
pub struct ObjectInfoArgs {
    pub operation: c_int,
    pub asked: ObjectInfoAsked,
}

/// The part of the union that is meant.
#[repr(C)]
pub struct ObjectInfoAsked {
    pub fields: c_uint,
    pub info: *mut ObjectInfo,
}
pub const OBJECT_GET_INFO: c_int = 3;

/// `H5O_info2_t`, with room for what a later version may add.
#[repr(C)]
pub struct ObjectInfo {
    pub file: c_ulong,
    pub token: [u8; 16],
    rest: [u64; 30],
}

/// `H5VL_optional_args_t`.
#[repr(C)]
pub struct OptionalArgs {
    pub operation: c_int,
    pub args: Ptr,
}

/// `H5VL_link_create_args_t`: of a hard link, the object that it leads to.
#[repr(C)]
pub struct LinkCreateArgs {
    pub operation: c_int,
    pub current: Ptr,
}
pub const LINK_HARD: c_int = 0;
/// `H5VL_LINK_EXISTS` of `H5VL_link_specific_t`.
pub const LINK_EXISTS: c_int = 1;

/// `H5VL_group_specific_args_t`; the union is that of a mount.
#[repr(C)]
pub struct GroupSpecificArgs {
    pub operation: c_int,
    pub name: Text,
    pub child: Ptr,
    pub list: Id,
}
pub const GROUP_MOUNT: c_int = 0;
pub const GROUP_FLUSH: c_int = 2;

/// `H5VL_file_specific_args_t`; the union holds three words at most.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FileSpecificArgs {
    pub operation: c_int,
    pub words: [Ptr; 3],
}
pub const FILE_FLUSH: c_int = 0;
pub const FILE_REOPEN: c_int = 1;
pub const FILE_IS_ACCESSIBLE: c_int = 2;
pub const FILE_DELETE: c_int = 3;

/// The first words of `H5VL_file_get_args_t`: of the access list, its id.
#[repr(C)]
pub struct FileGetArgs {
    pub operation: c_int,
    pub list: Id,
}
pub const FILE_GET_ACCESS_LIST: c_int = 1;

/// `H5VL_file_get_args_t`, as the number of a file is asked for.
#[repr(C)]
pub struct FileNumberArgs {
    pub operation: c_int,
    pub number: *mut c_ulong,
}
pub const FILE_GET_NUMBER: c_int = 3;

/// `H5VL_NATIVE_FILE_START_SWMR_WRITE`.
pub const FILE_START_SWMR: c_int = 13;

/// The first word of the other argument blocks.
#[repr(C)]
pub struct AnyArgs {
    pub operation: c_int,
}
pub const DATASET_FLUSH: c_int = 1;
pub const DATATYPE_FLUSH: c_int = 0;
pub const OBJECT_FLUSH: c_int = 4;

/// `H5VL_attr_specific_args_t` of `H5Aexists` and its kin.
#[repr(C)]
pub struct AttributeExistsArgs {
    pub operation: c_int,
    pub name: Text,
    pub exists: *mut bool,
}
pub const ATTRIBUTE_EXISTS: c_int = 2;

/// `H5VL_request_specific_args_t`.
#[repr(C)]
pub struct RequestSpecificArgs {
    pub operation: c_int,
    /// Of the error stack, an id; of the execution time, two pointers to `uint64_t`.
    pub words: [Ptr; 2],
}
pub const REQUEST_ERROR_STACK: c_int = 0;
pub const REQUEST_EXECUTION_TIME: c_int = 1;
pub const REQUEST_IN_PROGRESS: c_int = 0;
pub const REQUEST_SUCCEEDED: c_int = 1;
pub const REQUEST_FAILED: c_int = 2;
pub const REQUEST_CANNOT_CANCEL: c_int = 3;

/// `H5E_error2_t`.
#[repr(C)]
pub struct ErrorEntry {
    ids: [Id; 3],
    line: c_uint,
    function: Text,
    file: Text,
    pub text: Text,
}

/// `H5E_walk2_t`.
pub type EachError = unsafe extern "C" fn(c_uint, *const ErrorEntry, *mut c_void) -> c_int;

/// `H5VL_class_t` up to its callbacks; these follow as groups of their own.
#[repr(C)]
pub struct Class {
    pub version: c_uint,
    pub value: c_int,
    pub name: Text,
    pub connector_version: c_uint,
    pub capabilities: u64,
    pub initialize: unsafe extern "C" fn(Id) -> Status,
    pub terminate: unsafe extern "C" fn() -> Status,
    pub info: InfoClass,
    pub wrap: WrapClass,
    pub attribute: AttributeClass,
    pub dataset: DatasetClass,
    pub datatype: DatatypeClass,
    pub file: FileClass,
    pub group: GroupClass,
    pub link: LinkClass,
    pub object: ObjectClass,
    pub introspect: IntrospectClass,
    pub request: RequestClass,
    pub blob: BlobClass,
    pub token: TokenClass,
    pub optional: Optional,
}

pub type Optional = unsafe extern "C" fn(Ptr, *mut OptionalArgs, Id, Req) -> Status;
pub type LocatedOptional =
    unsafe extern "C" fn(Ptr, *const Location, *mut OptionalArgs, Id, Req) -> Status;
pub type Act = unsafe extern "C" fn(Ptr, Ptr, Id, Req) -> Status;
pub type Close = unsafe extern "C" fn(Ptr, Id, Req) -> Status;
pub type Open = unsafe extern "C" fn(Ptr, *const Location, Text, Access, Id, Req) -> Ptr;
pub type LocatedAct = unsafe extern "C" fn(Ptr, *const Location, Ptr, Id, Req) -> Status;
pub type LinkCopy =
    unsafe extern "C" fn(Ptr, *const Location, Ptr, *const Location, Id, Id, Id, Req) -> Status;
pub type Transfer =
    unsafe extern "C" fn(usize, *mut Ptr, *mut Id, *mut Id, *mut Id, Id, *mut Ptr, Req) -> Status;

#[repr(C)]
pub struct InfoClass {
    pub size: usize,
    pub copy: unsafe extern "C" fn(*const c_void) -> Ptr,
    pub compare: unsafe extern "C" fn(*mut c_int, *const c_void, *const c_void) -> Status,
    pub free: unsafe extern "C" fn(Ptr) -> Status,
    pub to_text: unsafe extern "C" fn(*const c_void, *mut *mut c_char) -> Status,
    pub from_text: unsafe extern "C" fn(Text, *mut Ptr) -> Status,
}

#[repr(C)]
pub struct WrapClass {
    pub get_object: unsafe extern "C" fn(*const c_void) -> Ptr,
    pub get_context: unsafe extern "C" fn(*const c_void, *mut Ptr) -> Status,
    pub wrap: unsafe extern "C" fn(Ptr, c_int, Ptr) -> Ptr,
    pub unwrap: unsafe extern "C" fn(Ptr) -> Ptr,
    pub free_context: unsafe extern "C" fn(Ptr) -> Status,
}

#[repr(C)]
pub struct AttributeClass {
    pub create: unsafe extern "C" fn(Ptr, *const Location, Text, Id, Id, Id, Id, Id, Req) -> Ptr,
    pub open: Open,
    pub read: unsafe extern "C" fn(Ptr, Id, Ptr, Id, Req) -> Status,
    pub write: unsafe extern "C" fn(Ptr, Id, *const c_void, Id, Req) -> Status,
    pub get: Act,
    pub specific: LocatedAct,
    pub optional: Optional,
    pub close: Close,
}

#[repr(C)]
pub struct DatasetClass {
    pub create:
        unsafe extern "C" fn(Ptr, *const Location, Text, Id, Id, Id, Id, Access, Id, Req) -> Ptr,
    pub open: Open,
    pub read: Transfer,
    pub write: Transfer,
    pub get: Act,
    pub specific: Act,
    pub optional: Optional,
    pub close: Close,
}

#[repr(C)]
pub struct DatatypeClass {
    pub commit:
        unsafe extern "C" fn(Ptr, *const Location, Text, Id, Id, Id, Access, Id, Req) -> Ptr,
    pub open: Open,
    pub get: Act,
    pub specific: Act,
    pub optional: Optional,
    pub close: Close,
}

#[repr(C)]
pub struct FileClass {
    pub create: unsafe extern "C" fn(Text, c_uint, Id, Id, Id, Req) -> Ptr,
    pub open: unsafe extern "C" fn(Text, c_uint, Id, Id, Req) -> Ptr,
    pub get: Act,
    pub specific: unsafe extern "C" fn(Ptr, *mut FileSpecificArgs, Id, Req) -> Status,
    pub optional: Optional,
    pub close: Close,
}

#[repr(C)]
pub struct GroupClass {
    pub create: unsafe extern "C" fn(Ptr, *const Location, Text, Id, Id, Access, Id, Req) -> Ptr,
    pub open: Open,
    pub get: Act,
    pub specific: unsafe extern "C" fn(Ptr, *mut GroupSpecificArgs, Id, Req) -> Status,
    pub optional: Optional,
    pub close: Close,
}

#[repr(C)]
pub struct LinkClass {
    pub create:
        unsafe extern "C" fn(*mut LinkCreateArgs, Ptr, *const Location, Id, Id, Id, Req) -> Status,
    pub copy: LinkCopy,
    pub move_: LinkCopy,
    pub get: LocatedAct,
    pub specific: LocatedAct,
    pub optional: LocatedOptional,
}

#[repr(C)]
pub struct ObjectClass {
    pub open: unsafe extern "C" fn(Ptr, *const Location, *mut c_int, Id, Req) -> Ptr,
    pub copy: unsafe extern "C" fn(
        Ptr,
        *const Location,
        Text,
        Ptr,
        *const Location,
        Text,
        Id,
        Id,
        Id,
        Req,
    ) -> Status,
    pub get: LocatedAct,
    pub specific: LocatedAct,
    pub optional: LocatedOptional,
}

#[repr(C)]
pub struct IntrospectClass {
    pub class: unsafe extern "C" fn(Ptr, c_int, *mut *const Class) -> Status,
    pub capabilities: unsafe extern "C" fn(*const c_void, *mut u64) -> Status,
    pub optional: unsafe extern "C" fn(Ptr, c_int, c_int, *mut u64) -> Status,
}

/// `H5VL_request_notify_t`.
pub type Notify = unsafe extern "C" fn(Ptr, c_int) -> Status;

#[repr(C)]
pub struct RequestClass {
    pub wait: unsafe extern "C" fn(Ptr, u64, *mut c_int) -> Status,
    pub notify: unsafe extern "C" fn(Ptr, Notify, Ptr) -> Status,
    pub cancel: unsafe extern "C" fn(Ptr, *mut c_int) -> Status,
    pub specific: unsafe extern "C" fn(Ptr, *mut RequestSpecificArgs) -> Status,
    pub optional: unsafe extern "C" fn(Ptr, *mut OptionalArgs) -> Status,
    pub free: unsafe extern "C" fn(Ptr) -> Status,
}

#[repr(C)]
pub struct BlobClass {
    pub put: unsafe extern "C" fn(Ptr, *const c_void, usize, Ptr, Ptr) -> Status,
    pub get: unsafe extern "C" fn(Ptr, *const c_void, Ptr, usize, Ptr) -> Status,
    pub specific: unsafe extern "C" fn(Ptr, Ptr, Ptr) -> Status,
    pub optional: unsafe extern "C" fn(Ptr, Ptr, *mut OptionalArgs) -> Status,
}

#[repr(C)]
pub struct TokenClass {
    pub compare: unsafe extern "C" fn(Ptr, Ptr, Ptr, *mut c_int) -> Status,
    pub to_text: unsafe extern "C" fn(Ptr, c_int, Ptr, *mut *mut c_char) -> Status,
    pub from_text: unsafe extern "C" fn(Ptr, c_int, Text, Ptr) -> Status,
}

/// How many kinds of memory a file has, and which of them share free space in the plain driver:
/// all metadata, and all data with the global heaps.
pub const MEMORY_KINDS: usize = 7;
pub const MEMORY_MAP: [c_int; MEMORY_KINDS] = [1, 1, 1, MEMORY_DATA, MEMORY_DATA, 1, 1];
/// `H5FD_MEM_DRAW`: values, those of global heaps too. What is written as any other is metadata.
pub const MEMORY_DATA: c_int = 3;

/// `H5FD_t` with room for what a later version may add: the library fills it, we do not look.
#[repr(C)]
pub struct DriverFile {
    pub driver: Id,
    pub class: *const DriverClass,
    reserved: [u64; 30],
}

impl DriverFile {
    pub fn new() -> DriverFile {
        DriverFile { driver: NO_ID, class: std::ptr::null(), reserved: [0; 30] }
    }
}

pub type File = *mut DriverFile;
type Nothing = Option<unsafe extern "C" fn()>;

/// `H5FD_class_t`.
#[repr(C)]
pub struct DriverClass {
    pub version: c_uint,
    pub value: c_int,
    pub name: Text,
    pub address_max: Address,
    pub close_degree: c_int,
    pub terminate: Nothing,
    pub superblock: [Nothing; 3],
    pub access_list_size: usize,
    pub access_list: [Nothing; 3],
    pub transfer_list_size: usize,
    pub transfer_list: [Nothing; 2],
    pub open: Option<unsafe extern "C" fn(Text, c_uint, Id, Address) -> File>,
    pub close: Option<unsafe extern "C" fn(File) -> Status>,
    pub compare: Option<unsafe extern "C" fn(File, File) -> c_int>,
    pub query: Option<unsafe extern "C" fn(File, *mut c_ulong) -> Status>,
    pub type_map: Nothing,
    pub allocate: Nothing,
    pub free: Nothing,
    pub get_eoa: Option<unsafe extern "C" fn(File, c_int) -> Address>,
    pub set_eoa: Option<unsafe extern "C" fn(File, c_int, Address) -> Status>,
    pub get_eof: Option<unsafe extern "C" fn(File, c_int) -> Address>,
    pub handle: Option<unsafe extern "C" fn(File, Id, *mut Ptr) -> Status>,
    pub read: Option<unsafe extern "C" fn(File, c_int, Id, Address, usize, Ptr) -> Status>,
    pub write: Option<unsafe extern "C" fn(File, c_int, Id, Address, usize, Ptr) -> Status>,
    pub vectors: [Nothing; 2],
    pub selections: [Nothing; 2],
    pub flush: Option<unsafe extern "C" fn(File, Id, bool) -> Status>,
    pub truncate: Option<unsafe extern "C" fn(File, Id, bool) -> Status>,
    pub lock: Option<unsafe extern "C" fn(File, bool) -> Status>,
    pub unlock: Option<unsafe extern "C" fn(File) -> Status>,
    pub delete: Option<unsafe extern "C" fn(Text, Id) -> Status>,
    pub control: Option<unsafe extern "C" fn(File, u64, u64, *const c_void, *mut Ptr) -> Status>,
    pub memory_map: [c_int; MEMORY_KINDS],
}

// SAFETY: a class is made once and only read; its pointers are to constants and functions.
unsafe impl Sync for DriverClass {}
// SAFETY: as above.
unsafe impl Send for DriverClass {}
// SAFETY: as above.
unsafe impl Sync for Class {}
// SAFETY: as above.
unsafe impl Send for Class {}
