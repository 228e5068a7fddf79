//! Interprets MIME types and file name extensions.

use polity_society::content::Kind;
use polity_society::mime::MimeType;

/// Aliases of MIME types, each with the name that polity uses instead.
const ALIASES: &[(&str, &str)] = &[
    ("image/jpg", "image/jpeg"),
    ("image/pjpeg", "image/jpeg"),
    ("image/x-png", "image/png"),
    ("image/x-ms-bmp", "image/bmp"),
    ("image/x-bmp", "image/bmp"),
    ("image/vnd.microsoft.icon", "image/x-icon"),
    ("audio/mp3", "audio/mpeg"),
    ("audio/x-mp3", "audio/mpeg"),
    ("audio/x-mpeg", "audio/mpeg"),
    ("audio/mpeg3", "audio/mpeg"),
    ("audio/x-mpeg-3", "audio/mpeg"),
    ("audio/x-wav", "audio/wav"),
    ("audio/wave", "audio/wav"),
    ("audio/vnd.wave", "audio/wav"),
    ("audio/x-flac", "audio/flac"),
    ("audio/x-aiff", "audio/aiff"),
    ("audio/mid", "audio/midi"),
    ("audio/x-midi", "audio/midi"),
    ("audio/m4a", "audio/mp4"),
    ("audio/x-m4a", "audio/mp4"),
    ("video/vnd.dlna.mpeg-tts", "video/mp2t"),
    ("video/avi", "video/x-msvideo"),
    ("application/x-pdf", "application/pdf"),
    ("application/font-woff", "font/woff"),
    ("application/java", "application/java-vm"),
    ("application/x-java-applet", "application/java-vm"),
    ("text/rtf", "application/rtf"),
    ("application/x-rtf", "application/rtf"),
    ("application/x-gzip", "application/gzip"),
    ("application/x-zip", "application/zip"),
    ("application/x-zip-compressed", "application/zip"),
    ("application/x-rar-compressed", "application/vnd.rar"),
    ("application/x-sqlite3", "application/vnd.sqlite3"),
    ("application/x-mach-binary", "application/x-executable"),
];

/// Types that say nothing about the content.
const MEANINGLESS: &[&str] = &[
    "application/octet-stream",
    "binary/octet-stream",
    "application/binary",
    "application/x-binary",
    "application/download",
    "application/x-download",
    "application/force-download",
    "application/unknown",
    "unknown/unknown",
];

/// Parses a declared MIME type. Returns the usual name of the type, in lower case and without parameters; `None` if
/// `declared` is empty, is malformed or says nothing about the content.
pub(crate) fn parse(declared: &str) -> Option<MimeType> {
    let mime_type = MimeType::parse(declared)?;
    if MEANINGLESS.contains(&mime_type.as_str()) {
        return None;
    }
    MimeType::parse(canonical(mime_type.as_str()))
}

/// Replaces an alias by the usual name of its type.
pub(crate) fn canonical(mime_type: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| *alias == mime_type).map_or(mime_type, |(_, name)| name)
}

/// `application/…` types that are text. Types that end in `+json`, `+xml` or `+yaml` are text even without an entry.
const TEXT: &[&str] = &[
    "json",
    "json5",
    "jsonl",
    "x-jsonlines",
    "x-ndjson",
    "ndjson",
    "json-seq",
    "xml",
    "xml-dtd",
    "javascript",
    "x-javascript",
    "ecmascript",
    "typescript",
    "x-typescript",
    "yaml",
    "x-yaml",
    "toml",
    "x-toml",
    "sql",
    "x-sql",
    "graphql",
    "x-sh",
    "x-csh",
    "x-shellscript",
    "x-bat",
    "x-powershell",
    "x-httpd-php",
    "x-php",
    "x-perl",
    "x-ruby",
    "x-python",
    "x-lua",
    "x-tcl",
    "x-tex",
    "x-latex",
    "x-texinfo",
    "x-bibtex",
    "x-subrip",
    "x-pem-file",
    "x-troff",
    "node",
    "mbox",
    "vnd.dart",
    "vnd.mozilla.xul+xml",
    "x-web-app-manifest",
];

/// Prefixes of the `application/…` types that are documents with a layout.
const DOCUMENTS: &[&str] = &[
    "pdf",
    "msword",
    "rtf",
    "postscript",
    "epub+zip",
    "x-mobipocket-ebook",
    "vnd.amazon.",
    "x-ibooks+zip",
    "oxps",
    "vnd.ms-word",
    "vnd.ms-excel",
    "vnd.ms-powerpoint",
    "vnd.ms-xpsdocument",
    "vnd.ms-works",
    "vnd.ms-visio",
    "vnd.visio",
    "vnd.ms-project",
    "vnd.ms-outlook",
    "vnd.openxmlformats-officedocument.",
    "vnd.oasis.opendocument.",
    "vnd.sun.xml.",
    "vnd.stardivision.",
    "vnd.apple.pages",
    "vnd.apple.numbers",
    "vnd.apple.keynote",
    "x-iwork-",
    "vnd.wordperfect",
    "wordperfect",
    "x-hwp",
    "haansofthwp",
    "vnd.hancom.",
    "onenote",
    "x-mspublisher",
    "vnd.lotus-",
    "x-abiword",
];

/// `application/…` types of the kind `Other`: binary types such as archives and programs.
const OTHER: &[&str] = &[
    "zip",
    "gzip",
    "vnd.rar",
    "x-7z-compressed",
    "x-tar",
    "x-bzip",
    "x-bzip2",
    "vnd.bzip3",
    "x-xz",
    "zstd",
    "x-lzip",
    "x-lz4",
    "x-lzma",
    "x-compress",
    "x-compressed",
    "x-cpio",
    "x-archive",
    "x-unix-archive",
    "java-archive",
    "java-vm",
    "vnd.android.package-archive",
    "vnd.android.dex",
    "wasm",
    "x-executable",
    "x-msdownload",
    "x-dosexec",
    "x-elf",
    "x-sharedlib",
    "vnd.microsoft.portable-executable",
    "vnd.sqlite3",
    "vnd.ms-cab-compressed",
    "x-ms-installer",
    "x-msi",
    "vnd.debian.binary-package",
    "x-rpm",
    "x-iso9660-image",
    "x-apple-diskimage",
    "x-shockwave-flash",
    "dicom",
    "x-ole-storage",
    "vnd.ms-fontobject",
    "x-parquet",
    "vnd.apache.parquet",
    "x-bplist",
    "x-qemu-disk",
    "x-python-code",
    "x-gettext-translation",
    "x-npy",
    "x-hdf5",
    "vnd.apache.arrow.file",
];

/// Returns the kind of content with this MIME type; `None` if the type does not determine the kind.
pub(crate) fn kind_of(mime_type: &str) -> Option<Kind> {
    let (family, subtype) = mime_type.split_once('/')?;
    let is_text_by_suffix = ["+json", "+xml", "+yaml"].iter().any(|suffix| subtype.ends_with(suffix));
    if is_text_by_suffix || subtype == "x-mpegurl" || subtype == "vnd.apple.mpegurl" {
        return Some(Kind::Text);
    }
    match family {
        "image" if subtype == "vnd.djvu" => Some(Kind::Document),
        "image" => Some(Kind::Image),
        "audio" => Some(Kind::Audio),
        "video" => Some(Kind::Video),
        "text" | "message" => Some(Kind::Text),
        "font" => Some(Kind::Other),
        "application" if TEXT.contains(&subtype) => Some(Kind::Text),
        "application" if subtype == "ogg" => Some(Kind::Audio),
        "application" if DOCUMENTS.iter().any(|start| subtype.starts_with(start)) => Some(Kind::Document),
        "application" if OTHER.contains(&subtype) => Some(Kind::Other),
        _ => None,
    }
}

/// Extensions of text files that the table of the library `mime_guess` lacks or assigns to another format. These
/// extensions apply only if the content is text: a `.ts` file that is not text is a video.
const TEXT_EXTENSIONS: &[(&str, &str)] = &[
    ("adoc", "text/asciidoc"),
    ("bash", "text/x-shellscript"),
    ("bat", "text/x-bat"),
    ("bib", "text/x-bibtex"),
    ("c", "text/x-c"),
    ("cc", "text/x-c++"),
    ("cfg", "text/plain"),
    ("cjs", "text/javascript"),
    ("clj", "text/x-clojure"),
    ("cmake", "text/x-cmake"),
    ("cmd", "text/x-bat"),
    ("cpp", "text/x-c++"),
    ("cs", "text/x-csharp"),
    ("cts", "text/typescript"),
    ("d", "text/x-d"),
    ("dart", "text/x-dart"),
    ("diff", "text/x-diff"),
    ("env", "text/plain"),
    ("erl", "text/x-erlang"),
    ("ex", "text/x-elixir"),
    ("exs", "text/x-elixir"),
    ("fs", "text/x-fsharp"),
    ("geojson", "application/geo+json"),
    ("go", "text/x-go"),
    ("gradle", "text/x-gradle"),
    ("graphql", "application/graphql"),
    ("h", "text/x-c"),
    ("hcl", "text/x-hcl"),
    ("hpp", "text/x-c++"),
    ("hs", "text/x-haskell"),
    ("ipynb", "application/json"),
    ("java", "text/x-java"),
    ("jl", "text/x-julia"),
    ("js", "text/javascript"),
    ("json5", "application/json5"),
    ("jsonc", "application/json"),
    ("jsonl", "application/jsonl"),
    ("jsx", "text/jsx"),
    ("key", "text/plain"),
    ("kt", "text/x-kotlin"),
    ("kts", "text/x-kotlin"),
    ("less", "text/x-less"),
    ("lock", "text/plain"),
    ("m", "text/x-objectivec"),
    ("mjs", "text/javascript"),
    ("mk", "text/x-makefile"),
    ("ml", "text/x-ocaml"),
    ("mod", "text/plain"),
    ("mts", "text/typescript"),
    ("ndjson", "application/x-ndjson"),
    ("nix", "text/x-nix"),
    ("org", "text/x-org"),
    ("patch", "text/x-diff"),
    ("pem", "application/x-pem-file"),
    ("php", "text/x-php"),
    ("pl", "text/x-perl"),
    ("properties", "text/plain"),
    ("proto", "text/x-protobuf"),
    ("ps1", "text/x-powershell"),
    ("pub", "text/plain"),
    ("py", "text/x-python"),
    ("pyi", "text/x-python"),
    ("r", "text/x-r"),
    ("rb", "text/x-ruby"),
    ("rst", "text/x-rst"),
    ("scala", "text/x-scala"),
    ("scss", "text/x-scss"),
    ("sh", "text/x-shellscript"),
    ("sol", "text/x-solidity"),
    ("sql", "application/sql"),
    ("srt", "application/x-subrip"),
    ("svelte", "text/x-svelte"),
    ("swift", "text/x-swift"),
    ("tex", "text/x-tex"),
    ("tf", "text/x-hcl"),
    ("toml", "application/toml"),
    ("ts", "text/typescript"),
    ("tsx", "text/tsx"),
    ("v", "text/x-verilog"),
    ("vb", "text/x-vb"),
    ("vue", "text/x-vue"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("zig", "text/x-zig"),
    ("zsh", "text/x-shellscript"),
];

/// Extensions that the table of the library `mime_guess` lacks or assigns to an unusual type. These extensions apply to
/// any content.
const MORE_EXTENSIONS: &[(&str, &str)] = &[
    ("caf", "audio/x-caf"),
    ("cur", "image/x-icon"),
    ("db", "application/vnd.sqlite3"),
    ("heif", "image/heif"),
    ("key", "application/vnd.apple.keynote"),
    ("lzma", "application/x-lzma"),
    ("numbers", "application/vnd.apple.numbers"),
    ("otf", "font/otf"),
    ("pages", "application/vnd.apple.pages"),
    ("parquet", "application/vnd.apache.parquet"),
    ("pcx", "image/x-pcx"),
    ("psd", "image/vnd.adobe.photoshop"),
    ("pyc", "application/x-python-code"),
    ("sqlite", "application/vnd.sqlite3"),
    ("svgz", "application/gzip"),
    ("zst", "application/zstd"),
];

/// Returns the MIME type for the extension of a file whose content is text.
pub(crate) fn of_text_file(filename: &str) -> Option<MimeType> {
    let extension = extension(filename)?;
    let ours = TEXT_EXTENSIONS.iter().find(|(name, _)| *name == extension).map(|(_, mime_type)| *mime_type);
    match ours {
        Some(mime_type) => MimeType::parse(mime_type),
        None => of_file(filename).filter(|mime_type| kind_of(mime_type.as_str()) == Some(Kind::Text)),
    }
}

/// Returns the MIME type for the extension of a file, without regard to its content.
pub(crate) fn of_file(filename: &str) -> Option<MimeType> {
    let extension = extension(filename)?;
    let ours = MORE_EXTENSIONS.iter().find(|(name, _)| *name == extension).map(|(_, mime_type)| *mime_type);
    let mime_type = ours.or_else(|| mime_guess::from_ext(&extension).first_raw())?;
    parse(mime_type)
}

fn extension(filename: &str) -> Option<String> {
    let (_, extension) = filename.rsplit_once('.')?;
    (!extension.is_empty()).then(|| extension.trim().to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_types() {
        let check = |declared: &str, expect: Option<&str>| {
            assert_eq!(parse(declared).as_ref().map(MimeType::as_str), expect, "{declared}")
        };
        check("image/png", Some("image/png"));
        check(" Text/HTML; charset=UTF-8 ", Some("text/html"));
        check("image/jpg", Some("image/jpeg"));
        check("audio/x-wav", Some("audio/wav"));
        check("application/octet-stream", None);
        check("Binary/Octet-Stream", None);
        check("", None);
        check("png", None);
        check("image/", None);
        check("/png", None);
        check("image/*", None);
        check("image/png, image/gif", None);
        check("图片/png", None);
        check("image/a/b", None);
        check(&format!("image/{}", "x".repeat(200)), None);
    }

    #[test]
    fn kinds() {
        let check =
            |mime_type: &str, expect: Option<Kind>| assert_eq!(kind_of(mime_type), expect, "{mime_type}");
        check("image/svg+xml", Some(Kind::Text));
        check("image/heic", Some(Kind::Image));
        check("audio/x-mpegurl", Some(Kind::Text));
        check("application/ld+json", Some(Kind::Text));
        check("application/rtf", Some(Kind::Document));
        check("message/rfc822", Some(Kind::Text));
        check("application/vnd.ms-excel.sheet.macroenabled.12", Some(Kind::Document));
        check("application/zip", Some(Kind::Other));
        check("font/woff2", Some(Kind::Other));
        check("application/x-nobody-knows", None);
        check("model/stl", None);
    }

    #[test]
    fn kept_names_are_kept() {
        for (alias, name) in ALIASES {
            assert_eq!(canonical(name), *name, "{alias}");
        }
        for (extension, mime_type) in TEXT_EXTENSIONS {
            assert_eq!(kind_of(mime_type), Some(Kind::Text), "{extension}");
        }
        for (_, mime_type) in ALIASES.iter().chain(TEXT_EXTENSIONS).chain(MORE_EXTENSIONS) {
            assert_eq!(MimeType::parse(mime_type), Some(MimeType::unchecked(*mime_type)));
        }
    }
}
