//! Formats that llguidance does not know, or takes too much for, as regexes of the whole text.

const DAYS: &str = concat!(
    "(?:[0-9]{4}-(?:",
    "(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])",
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)",
    "|02-(?:0[1-9]|1[0-9]|2[0-8]))",
    "|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)",
);
const TIME: &str = concat!(
    "(?:[01][0-9]|2[0-3]):[0-5][0-9]:(?:[0-5][0-9]|60)(?:\\.[0-9]+)?",
    "(?:[zZ]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])",
);
/// RFC 6901: "~" is written as "~0", and "/" in a name as "~1".
const POINTER: &str = "(?:/(?:[^/~]|~[01])*)*";
/// RFC 3986: what segments, queries and fragments have in common, and the letters of a host.
const LETTER: &str = "[a-zA-Z0-9._~!$&'()*+,;=:@-]|%[0-9a-fA-F]{2}";
const SEGMENT_WITHOUT_COLON: &str = "(?:[a-zA-Z0-9._~!$&'()*+,;=@-]|%[0-9a-fA-F]{2})+";
const HOST: &str = "(?:[a-zA-Z0-9._~!$&'()*+,;=-]|%[0-9a-fA-F]{2})*|\\[[0-9a-fA-F:.]+\\]";
const USER: &str = "(?:[a-zA-Z0-9._~!$&'()*+,;=:-]|%[0-9a-fA-F]{2})*@";

/// The texts of a format; none for one that is not known here.
pub fn regex_of(format: &str) -> Option<String> {
    let body = match format {
        "date" => DAYS.to_string(),
        "date-time" => format!("{DAYS}[tT]{TIME}"),
        "json-pointer" => POINTER.to_string(),
        "relative-json-pointer" => format!("(?:0|[1-9][0-9]*)(?:#|{POINTER})"),
        "uri-reference" => uri_reference(),
        "uri-template" => uri_template(),
        _ => return None,
    };
    Some(format!("^(?:{body})$"))
}

/// A URI, or what leads to one from another: a path, a query or a fragment.
fn uri_reference() -> String {
    let authority = format!("//(?:{USER})?(?:{HOST})(?::[0-9]*)?(?:/(?:{LETTER})*)*");
    let absolute = format!("/(?:(?:{LETTER})+(?:/(?:{LETTER})*)*)?");
    let relative = format!("{SEGMENT_WITHOUT_COLON}(?:/(?:{LETTER})*)*");
    let rootless = format!("(?:{LETTER})+(?:/(?:{LETTER})*)*");
    let tail = format!("(?:\\?(?:{LETTER}|[/?])*)?(?:#(?:{LETTER}|[/?])*)?");
    format!(
        "(?:[a-zA-Z][a-zA-Z0-9+.-]*:(?:{authority}|{absolute}|{rootless})?\
         |{authority}|{absolute}|{relative})?{tail}"
    )
}

/// RFC 6570: letters of a URI, and expressions such as {?name*,size:3}.
fn uri_template() -> String {
    let name = "(?:[a-zA-Z0-9_]|%[0-9a-fA-F]{2})+(?:\\.(?:[a-zA-Z0-9_]|%[0-9a-fA-F]{2})+)*";
    let variable = format!("{name}(?::[1-9][0-9]{{0,3}}|\\*)?");
    let literal = "[^\\x00-\\x20\"%<>\\\\^`{|}\\x7f]|%[0-9a-fA-F]{2}";
    format!("(?:{literal}|\\{{[+#./;?&=,!@|]?{variable}(?:,{variable})*\\}})*")
}
