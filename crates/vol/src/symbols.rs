//! The functions of HDF5 that we call, looked up by name in the library that loaded us.

use std::ffi::{c_char, c_int, c_uint, c_void, CStr};
use std::ops::Deref;

use crate::abi::{
    Access, Address, EachError, File, FileSpecificArgs, GroupSpecificArgs, Id, LinkCreateArgs,
    Location, Notify, OptionalArgs, Ptr, Req, RequestSpecificArgs, Status, Text,
};

/// Makes a table: a field, its C name, and what it is given and gives.
macro_rules! symbols {
    ($(#[$about:meta])* $table:ident;
     $($field:ident $name:literal ($($arg:ty),* $(,)?) -> $result:ty;)*) => {
        $(#[$about])*
        pub struct $table {
            $(pub $field: unsafe extern "C" fn($($arg),*) -> $result,)*
        }

        impl $table {
            /// Looks all of them up; the name of the first that is not there.
            pub fn load(find: impl Fn(&CStr) -> *mut c_void) -> Result<$table, &'static str> {
                Ok($table {
                    $($field: {
                        let found = find(c_str(concat!($name, "\0")));
                        if found.is_null() {
                            return Err($name);
                        }
                        // SAFETY: this is the function of that name of an HDF5 with our version of
                        // the connector interface, whose declaration is spelled out here.
                        unsafe {
                            std::mem::transmute::<
                                *mut c_void,
                                unsafe extern "C" fn($($arg),*) -> $result,
                            >(found)
                        }
                    },)*
                })
            }
        }
    };
}

fn c_str(text: &'static str) -> &'static CStr {
    CStr::from_bytes_with_nul(text.as_bytes()).expect("one zero, at the end")
}

type Locate = *const Location;

symbols! {
    /// Functions of one HDF5 library.
    Symbols;
    attribute_create "H5VLattr_create"(Ptr, Locate, Id, Text, Id, Id, Id, Id, Id, Req) -> Ptr;
    attribute_open "H5VLattr_open"(Ptr, Locate, Id, Text, Access, Id, Req) -> Ptr;
    attribute_read "H5VLattr_read"(Ptr, Id, Id, Ptr, Id, Req) -> Status;
    attribute_write "H5VLattr_write"(Ptr, Id, Id, *const c_void, Id, Req) -> Status;
    attribute_get "H5VLattr_get"(Ptr, Id, Ptr, Id, Req) -> Status;
    attribute_specific "H5VLattr_specific"(Ptr, Locate, Id, Ptr, Id, Req) -> Status;
    attribute_optional "H5VLattr_optional"(Ptr, Id, *mut OptionalArgs, Id, Req) -> Status;
    attribute_close "H5VLattr_close"(Ptr, Id, Id, Req) -> Status;

    dataset_create "H5VLdataset_create"(
        Ptr, Locate, Id, Text, Id, Id, Id, Id, Access, Id, Req,
    ) -> Ptr;
    dataset_open "H5VLdataset_open"(Ptr, Locate, Id, Text, Access, Id, Req) -> Ptr;
    dataset_read "H5VLdataset_read"(
        usize, *mut Ptr, Id, *mut Id, *mut Id, *mut Id, Id, *mut Ptr, Req,
    ) -> Status;
    dataset_write "H5VLdataset_write"(
        usize, *mut Ptr, Id, *mut Id, *mut Id, *mut Id, Id, *mut Ptr, Req,
    ) -> Status;
    dataset_get "H5VLdataset_get"(Ptr, Id, Ptr, Id, Req) -> Status;
    dataset_specific "H5VLdataset_specific"(Ptr, Id, Ptr, Id, Req) -> Status;
    dataset_optional "H5VLdataset_optional"(Ptr, Id, *mut OptionalArgs, Id, Req) -> Status;
    dataset_close "H5VLdataset_close"(Ptr, Id, Id, Req) -> Status;

    datatype_commit "H5VLdatatype_commit"(
        Ptr, Locate, Id, Text, Id, Id, Id, Access, Id, Req,
    ) -> Ptr;
    datatype_open "H5VLdatatype_open"(Ptr, Locate, Id, Text, Access, Id, Req) -> Ptr;
    datatype_get "H5VLdatatype_get"(Ptr, Id, Ptr, Id, Req) -> Status;
    datatype_specific "H5VLdatatype_specific"(Ptr, Id, Ptr, Id, Req) -> Status;
    datatype_optional "H5VLdatatype_optional"(Ptr, Id, *mut OptionalArgs, Id, Req) -> Status;
    datatype_close "H5VLdatatype_close"(Ptr, Id, Id, Req) -> Status;

    file_create "H5VLfile_create"(Text, c_uint, Id, Id, Id, Req) -> Ptr;
    file_open "H5VLfile_open"(Text, c_uint, Id, Id, Req) -> Ptr;
    file_get "H5VLfile_get"(Ptr, Id, Ptr, Id, Req) -> Status;
    file_specific "H5VLfile_specific"(Ptr, Id, *mut FileSpecificArgs, Id, Req) -> Status;
    file_optional "H5VLfile_optional"(Ptr, Id, *mut OptionalArgs, Id, Req) -> Status;
    file_close "H5VLfile_close"(Ptr, Id, Id, Req) -> Status;

    group_create "H5VLgroup_create"(Ptr, Locate, Id, Text, Id, Id, Access, Id, Req) -> Ptr;
    group_open "H5VLgroup_open"(Ptr, Locate, Id, Text, Access, Id, Req) -> Ptr;
    group_get "H5VLgroup_get"(Ptr, Id, Ptr, Id, Req) -> Status;
    group_specific "H5VLgroup_specific"(Ptr, Id, *mut GroupSpecificArgs, Id, Req) -> Status;
    group_optional "H5VLgroup_optional"(Ptr, Id, *mut OptionalArgs, Id, Req) -> Status;
    group_close "H5VLgroup_close"(Ptr, Id, Id, Req) -> Status;

    link_create "H5VLlink_create"(*mut LinkCreateArgs, Ptr, Locate, Id, Id, Id, Id, Req) -> Status;
    link_copy "H5VLlink_copy"(Ptr, Locate, Ptr, Locate, Id, Id, Id, Id, Req) -> Status;
    link_move "H5VLlink_move"(Ptr, Locate, Ptr, Locate, Id, Id, Id, Id, Req) -> Status;
    link_get "H5VLlink_get"(Ptr, Locate, Id, Ptr, Id, Req) -> Status;
    link_specific "H5VLlink_specific"(Ptr, Locate, Id, Ptr, Id, Req) -> Status;
    link_optional "H5VLlink_optional"(Ptr, Locate, Id, *mut OptionalArgs, Id, Req) -> Status;

    object_open "H5VLobject_open"(Ptr, Locate, Id, *mut c_int, Id, Req) -> Ptr;
    object_copy "H5VLobject_copy"(
        Ptr, Locate, Text, Ptr, Locate, Text, Id, Id, Id, Id, Req,
    ) -> Status;
    object_get "H5VLobject_get"(Ptr, Locate, Id, Ptr, Id, Req) -> Status;
    object_specific "H5VLobject_specific"(Ptr, Locate, Id, Ptr, Id, Req) -> Status;
    object_optional "H5VLobject_optional"(Ptr, Locate, Id, *mut OptionalArgs, Id, Req) -> Status;

    introspect_class "H5VLintrospect_get_conn_cls"(Ptr, Id, c_int, *mut Ptr) -> Status;
    introspect_capabilities "H5VLintrospect_get_cap_flags"(*const c_void, Id, *mut u64) -> Status;
    introspect_optional "H5VLintrospect_opt_query"(Ptr, Id, c_int, c_int, *mut u64) -> Status;

    request_wait "H5VLrequest_wait"(Ptr, Id, u64, *mut c_int) -> Status;
    request_notify "H5VLrequest_notify"(Ptr, Id, Notify, Ptr) -> Status;
    request_cancel "H5VLrequest_cancel"(Ptr, Id, *mut c_int) -> Status;
    request_specific "H5VLrequest_specific"(Ptr, Id, *mut RequestSpecificArgs) -> Status;
    request_optional "H5VLrequest_optional"(Ptr, Id, *mut OptionalArgs) -> Status;
    request_free "H5VLrequest_free"(Ptr, Id) -> Status;

    blob_put "H5VLblob_put"(Ptr, Id, *const c_void, usize, Ptr, Ptr) -> Status;
    blob_get "H5VLblob_get"(Ptr, Id, *const c_void, Ptr, usize, Ptr) -> Status;
    blob_specific "H5VLblob_specific"(Ptr, Id, Ptr, Ptr) -> Status;
    blob_optional "H5VLblob_optional"(Ptr, Id, Ptr, *mut OptionalArgs) -> Status;

    token_compare "H5VLtoken_cmp"(Ptr, Id, Ptr, Ptr, *mut c_int) -> Status;
    token_to_text "H5VLtoken_to_str"(Ptr, c_int, Id, Ptr, *mut *mut c_char) -> Status;
    token_from_text "H5VLtoken_from_str"(Ptr, c_int, Id, Text, Ptr) -> Status;
    optional "H5VLoptional"(Ptr, Id, *mut OptionalArgs, Id, Req) -> Status;

    get_object "H5VLget_object"(Ptr, Id) -> Ptr;
    get_context "H5VLget_wrap_ctx"(Ptr, Id, *mut Ptr) -> Status;
    wrap "H5VLwrap_object"(Ptr, c_int, Id, Ptr) -> Ptr;
    unwrap "H5VLunwrap_object"(Ptr, Id) -> Ptr;
    free_context "H5VLfree_wrap_ctx"(Ptr, Id) -> Status;
    copy_info "H5VLcopy_connector_info"(Id, *mut Ptr, *const c_void) -> Status;
    compare_info "H5VLcmp_connector_info"(*mut c_int, Id, *const c_void, *const c_void) -> Status;
    free_info "H5VLfree_connector_info"(Id, Ptr) -> Status;
    info_to_text "H5VLconnector_info_to_str"(*const c_void, Id, *mut *mut c_char) -> Status;
    info_from_text "H5VLconnector_str_to_info"(Text, Id, *mut Ptr) -> Status;
    compare_connectors "H5VLcmp_connector_cls"(*mut c_int, Id, Id) -> Status;
    connector_value "H5VLget_value"(Id, *mut c_int) -> Status;
    connector_by_value "H5VLget_connector_id_by_value"(c_int) -> Id;
    register_connector "H5VLregister_connector_by_value"(c_int, Id) -> Id;
    register_connector_by_name "H5VLregister_connector_by_name"(Text, Id) -> Id;

    keep_id "H5Iinc_ref"(Id) -> c_int;
    drop_id "H5Idec_ref"(Id) -> c_int;
    allocate "H5allocate_memory"(usize, bool) -> Ptr;
    free_memory "H5free_memory"(Ptr) -> Status;

    list_copy "H5Pcopy"(Id) -> Id;
    list_close "H5Pclose"(Id) -> Status;
    list_exists "H5Pexist"(Id, Text) -> c_int;
    list_get "H5Pget"(Id, Text, Ptr) -> Status;
    links_get_files "H5Pget_elink_fapl"(Id) -> Id;
    links_set_files "H5Pset_elink_fapl"(Id, Id) -> Status;
    list_get_info "H5Pget_vol_info"(Id, *mut Ptr) -> Status;
    list_set_connector "H5Pset_vol"(Id, Id, *const c_void) -> Status;
    list_get_driver "H5Pget_driver"(Id) -> Id;
    list_set_driver "H5Pset_driver"(Id, Id, *const c_void) -> Status;
    list_set_plain_driver "H5Pset_fapl_sec2"(Id) -> Status;

    space_points "H5Sget_simple_extent_npoints"(Id) -> i64;
    space_close "H5Sclose"(Id) -> Status;
    type_size "H5Tget_size"(Id) -> usize;

    driver_register "H5FDregister"(*const c_void) -> Id;
    driver_open "H5FDopen"(Text, c_uint, Id, Address) -> File;
    driver_close "H5FDclose"(File) -> Status;

    stack_take "H5Eget_current_stack"() -> Id;
    stack_set "H5Eset_current_stack"(Id) -> Status;
    stack_create "H5Ecreate_stack"() -> Id;
    stack_count "H5Eget_num"(Id) -> isize;
    printing_is_new "H5Eauto_is_v2"(Id, *mut c_uint) -> Status;
    printing_get "H5Eget_auto2"(Id, *mut Ptr, *mut Ptr) -> Status;
    printing_set "H5Eset_auto2"(Id, Ptr, Ptr) -> Status;
    class_register "H5Eregister_class"(Text, Text, Text) -> Id;
    message_create "H5Ecreate_msg"(Id, c_int, Text) -> Id;
}

symbols! {
    /// What is needed to call a thread-safe library from a thread of ours.
    ThreadSymbols;
    acquire "H5TSmutex_acquire"(c_uint, *mut bool) -> Status;
    release "H5TSmutex_release"(*mut c_uint) -> Status;
    at_close "H5atclose"(unsafe extern "C" fn(Ptr), Ptr) -> Status;
    is_threadsafe "H5is_library_threadsafe"(*mut bool) -> Status;

    kind_of "H5Iget_type"(Id) -> c_int;
    each_id "H5Iiterate"(c_int, unsafe extern "C" fn(Id, Ptr) -> Status, Ptr) -> Status;
    each_error "H5Ewalk2"(Id, c_int, EachError, Ptr) -> Status;

    type_copy "H5Tcopy"(Id) -> Id;
    type_close "H5Tclose"(Id) -> Status;
    type_class "H5Tget_class"(Id) -> c_int;
    type_encode "H5Tencode"(Id, Ptr, *mut usize) -> Status;

    list_layout "H5Pget_layout"(Id) -> c_int;
    list_filters "H5Pget_nfilters"(Id) -> c_int;
    list_filter "H5Pget_filter2"(
        Id, c_uint, *mut c_uint, *mut usize, *mut c_uint, usize, *mut c_char, *mut c_uint,
    ) -> c_int;
    list_external_files "H5Pget_external_count"(Id) -> c_int;

    space_copy "H5Scopy"(Id) -> Id;
    space_is_valid "H5Sselect_valid"(Id) -> c_int;
    space_selected "H5Sget_select_npoints"(Id) -> i64;
    space_selection "H5Sget_select_type"(Id) -> c_int;
    space_is_regular "H5Sis_regular_hyperslab"(Id) -> c_int;
    space_bounds "H5Sget_select_bounds"(Id, *mut u64, *mut u64) -> Status;
    space_dims "H5Sget_simple_extent_dims"(Id, *mut u64, *mut u64) -> c_int;
}

/// What a thread-safe library has for calls from other threads.
pub struct Threads {
    symbols: ThreadSymbols,
    /// The default transfer properties.
    transfer_list: *const Id,
}

// SAFETY: functions, and a number that HDF5 changes only while nobody calls it.
unsafe impl Send for Threads {}
// SAFETY: as above.
unsafe impl Sync for Threads {}

impl Deref for Threads {
    type Target = ThreadSymbols;

    fn deref(&self) -> &ThreadSymbols {
        &self.symbols
    }
}

impl Threads {
    /// What the library has; `None`: it is not thread-safe.
    pub fn of(find: impl Fn(&CStr) -> *mut c_void) -> Option<Threads> {
        let symbols = ThreadSymbols::load(&find).ok()?;
        let transfer_list = find(c"H5P_LST_DATASET_XFER_ID_g").cast_const().cast::<Id>();
        let mut is_threadsafe = false;
        // SAFETY: it only sets the flag.
        let asked = unsafe { (symbols.is_threadsafe)(&raw mut is_threadsafe) };
        let is_there = asked >= 0 && is_threadsafe && !transfer_list.is_null();
        is_there.then_some(Threads { symbols, transfer_list })
    }

    /// The id of the default transfer properties, now.
    pub fn transfer_list(&self) -> Id {
        // SAFETY: a variable of the library, which is in a call.
        unsafe { *self.transfer_list }
    }
}
