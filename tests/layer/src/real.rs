//! Access to the original functions of the C library.

/// Returns the original function of this name, as a pointer of this type.
macro_rules! real {
    ($name:literal as $type:ty) => {{
        static ADDRESS: std::sync::atomic::AtomicPtr<libc::c_void> =
            std::sync::atomic::AtomicPtr::new(std::ptr::null_mut());
        let mut address = ADDRESS.load(std::sync::atomic::Ordering::Relaxed);
        if address.is_null() {
            // SAFETY: the name ends with a zero byte.
            address = unsafe { libc::dlsym(libc::RTLD_NEXT, $name.as_ptr()) };
            if address.is_null() {
                // The process cannot work without this function.
                std::process::abort();
            }
            ADDRESS.store(address, std::sync::atomic::Ordering::Relaxed);
        }
        // SAFETY: the C library's function of this name has this type.
        unsafe { std::mem::transmute::<*mut libc::c_void, $type>(address) }
    }};
}

pub(crate) use real;
