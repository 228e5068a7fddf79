//! Chooses the name for a downloaded file.

use percent_encoding::percent_decode_str;
use url::Url;

use crate::shown::one_line;

/// Maximum length of a name, in characters.
const LONGEST: usize = 100;

/// Takes the name from the header `Content-Disposition`, else from the URL, else invents a name. The name has no
/// directories, no control characters and no dot at its start.
pub(super) fn of(headers: &[(String, String)], url: &Url) -> String {
    let disposition = headers.iter().find(|(name, _)| name == "content-disposition").map(|(_, value)| value);
    let proposed = disposition.and_then(|value| of_disposition(value));
    let last = || url.path_segments().and_then(|mut segments| segments.next_back()).map(decoded);
    let safe = |name: String| Some(safe(&name)).filter(|name| !name.is_empty());
    proposed.and_then(safe).or_else(|| last().and_then(safe)).unwrap_or_else(|| "download".to_owned())
}

fn of_disposition(value: &str) -> Option<String> {
    let parameter = |wanted: &str| {
        value.split(';').find_map(|part| {
            let (name, value) = part.split_once('=')?;
            name.trim().eq_ignore_ascii_case(wanted).then(|| value.trim().trim_matches('"'))
        })
    };
    let extended = parameter("filename*").and_then(|value| {
        let (charset, rest) = value.split_once('\'')?;
        let (_, name) = rest.split_once('\'')?;
        charset.eq_ignore_ascii_case("utf-8").then(|| decoded(name))
    });
    extended.or_else(|| parameter("filename").map(str::to_owned))
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

fn safe(name: &str) -> String {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let kept: String = name
        .chars()
        .map(|char| if matches!(char, ':' | '*' | '?' | '"' | '<' | '>' | '|') { '_' } else { char })
        .collect();
    let kept = one_line(&kept, LONGEST);
    kept.trim_start_matches('.').trim_end_matches(['.', ' ', '…']).to_owned()
}
