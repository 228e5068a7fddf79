//! The encodings for the code pages and character sets of RTF.

use encoding_rs::Encoding;

/// Returns the encoding of a Windows code page.
pub(super) fn encoding_of_page(number: Option<i32>) -> Option<&'static Encoding> {
    codepage::to_encoding_no_replacement(u16::try_from(number?).ok()?)
}

/// Returns the encoding of a font's character set; `None` if the document's code page applies.
pub(super) fn encoding_of_charset(number: Option<i32>) -> Option<&'static Encoding> {
    let page = match number? {
        0 => 1252,
        77 => 10_000,
        128 => 932,
        129 => 949,
        134 => 936,
        136 => 950,
        161 => 1253,
        162 => 1254,
        163 => 1258,
        177 => 1255,
        178 => 1256,
        186 => 1257,
        204 => 1251,
        222 => 874,
        238 => 1250,
        _ => return None,
    };
    encoding_of_page(Some(page))
}
