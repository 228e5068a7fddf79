//! The meaning of RTF's control words for the text.

/// The meaning of a control word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The word stands for this character.
    Character(char),
    /// The word ends a line.
    Line,
    /// The word ends a row of a table.
    Row,
    /// The number after the word is a unit of UTF-16.
    Unicode,
    /// The number after the word is the count of substitute characters that follow each unit of UTF-16. Programs that
    /// do not know Unicode show the substitutes.
    StandIns,
    /// The number after the word is the code page of the document.
    CodePage,
    /// The document has the encoding of old Macintosh computers.
    MacRoman,
    /// The group is the list of fonts.
    Fonts,
    /// The number after the word selects the font.
    Font,
    /// The number after the word is the font of all text that selects no font.
    DefaultFont,
    /// The number after the word is the character set of the current font in the list of fonts.
    FontCharset,
    /// The number after the word is the code page of the current font in the list of fonts.
    FontCodePage,
    /// Hides the text after the word, or shows it again if the number after the word is 0.
    Hidden,
    /// A tracked change has deleted the text after the word. If the number after the word is 0, the text is not
    /// deleted.
    Deleted,
    /// Resets the text after the word to the default formatting.
    Plain,
    /// The group is not text.
    NoText,
    /// The group contains the same text twice.
    Twice,
    /// The group repeats the text of the group around it, but in Unicode.
    InUnicode,
    /// The group contains the text in a box. This text counts, although the group around it is not text.
    Box,
    /// The group is a footnote or an endnote.
    Footnote,
    /// Binary data follows, which is not text. The number after the word is the length of the data in bytes.
    Binary,
    /// The word has no meaning for the text.
    Nothing,
}

/// Returns the meaning of a control word.
pub(super) fn meaning(word: &str) -> Meaning {
    match word {
        "par" | "line" | "page" | "column" | "sect" | "softline" => Meaning::Line,
        "row" | "nestrow" => Meaning::Row,
        "tab" | "cell" | "nestcell" => Meaning::Character('\t'),
        "emspace" | "enspace" | "qmspace" => Meaning::Character(' '),
        "emdash" => Meaning::Character('—'),
        "endash" => Meaning::Character('–'),
        "lquote" => Meaning::Character('‘'),
        "rquote" => Meaning::Character('’'),
        "ldblquote" => Meaning::Character('“'),
        "rdblquote" => Meaning::Character('”'),
        "bullet" => Meaning::Character('•'),
        "u" => Meaning::Unicode,
        "uc" => Meaning::StandIns,
        "ansicpg" => Meaning::CodePage,
        "mac" => Meaning::MacRoman,
        "fonttbl" => Meaning::Fonts,
        "f" => Meaning::Font,
        "deff" => Meaning::DefaultFont,
        "fcharset" => Meaning::FontCharset,
        "cpg" => Meaning::FontCodePage,
        "v" => Meaning::Hidden,
        "deleted" => Meaning::Deleted,
        "plain" => Meaning::Plain,
        "footnote" => Meaning::Footnote,
        "upr" => Meaning::Twice,
        "ud" => Meaning::InUnicode,
        "shptxt" => Meaning::Box,
        "bin" => Meaning::Binary,
        "colortbl" | "stylesheet" | "info" | "pict" | "header" | "headerl" | "headerr" | "headerf"
        | "footer" | "footerl" | "footerr" | "footerf" | "fldinst" | "filetbl" | "listtable"
        | "listoverridetable" | "revtbl" | "ftnsep" | "ftnsepc" | "ftncn" | "aftnsep" | "aftnsepc"
        | "aftncn" | "xe" | "tc" | "rxe" | "txe" | "private" | "template" | "operator" | "shprslt" | "sp"
        | "nonshppict" | "nesttableprops" | "nonesttables" | "themedata" | "objdata" | "objclass"
        | "objname" | "datafield" | "annotation" | "atnid" | "atnauthor" | "bkmkstart" | "bkmkend" => {
            Meaning::NoText
        }
        _ => Meaning::Nothing,
    }
}
