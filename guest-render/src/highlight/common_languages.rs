//! The table of languages: what their words, comments and strings look like.

use super::languages::{Language, LanguageFeature, StringSyntax};

const BACKTICK_MULTILINE: StringSyntax = string_syntax("`", true, true);
const BACKTICK_MULTILINE_RAW: StringSyntax = string_syntax("`", false, true);
const BACKTICK_RAW: StringSyntax = string_syntax("`", false, false);
const DOUBLE_QUOTED: StringSyntax = string_syntax("\"", true, false);
const DOUBLE_MULTILINE: StringSyntax = string_syntax("\"", true, true);
const DOUBLE_RAW: StringSyntax = string_syntax("\"", false, false);
const SINGLE_QUOTED: StringSyntax = string_syntax("'", true, false);
const SINGLE_MULTILINE: StringSyntax = string_syntax("'", true, true);
const SINGLE_RAW: StringSyntax = string_syntax("'", false, false);
const TRIPLE_QUOTED: StringSyntax = string_syntax("\"\"\"", true, true);
const TRIPLE_SINGLE: StringSyntax = string_syntax("'''", true, true);

const fn string_syntax(mark: &'static str, escapes: bool, lines: bool) -> StringSyntax {
    StringSyntax {
        mark,
        escapes,
        lines,
    }
}

/// A language of nothing in particular.
const PLAIN: Language = Language {
    names: "",
    keywords: "",
    literals: "",
    types: "",
    line_comments: &[],
    block_comments: &[],
    quotes: &[],
    flags: &[],
};

/// All that are known.
pub(super) const LANGUAGES: &[Language] = &[
    Language {
        names: "rust rs",
        keywords: "as async await break const continue crate dyn else enum extern fn for if impl in let \
            loop match mod move mut pub ref return self static struct super trait type union \
            unsafe use where while yield",
        literals: "true false",
        types: "Self bool char f32 f64 i8 i16 i32 i64 i128 isize str u8 u16 u32 u64 u128 usize",
        line_comments: &["//"],
        block_comments: &[("/*", "*/")],
        quotes: &[DOUBLE_MULTILINE, SINGLE_QUOTED],
        flags: &[
            LanguageFeature::NestedComments,
            LanguageFeature::HashAttributes,
            LanguageFeature::RawStrings,
            LanguageFeature::Lifetimes,
            LanguageFeature::CapitalizedTypes,
        ],
    },
    Language {
        names: "javascript js jsx mjs cjs node typescript ts tsx mts",
        keywords: "abstract as asserts async await break case catch class const continue debugger \
            declare default delete do else enum export extends finally for from function get if \
            implements import in infer instanceof interface is keyof let namespace new of \
            private protected public readonly return satisfies set static super switch this \
            throw try type typeof var void while with yield",
        literals: "true false null undefined NaN Infinity",
        types: "any bigint boolean never number object string symbol unknown",
        line_comments: &["//"],
        block_comments: &[("/*", "*/")],
        quotes: &[DOUBLE_QUOTED, SINGLE_QUOTED, BACKTICK_MULTILINE],
        flags: &[
            LanguageFeature::AtAttributes,
            LanguageFeature::Regexes,
            LanguageFeature::CapitalizedTypes,
        ],
    },
    Language {
        names: "python py python3 pyi",
        keywords: "and as assert async await break case class continue def del elif else except finally \
            for from global if import in is lambda match nonlocal not or pass raise return try \
            while with yield",
        literals: "True False None self cls",
        types: "bool bytes dict float int list object set str tuple",
        line_comments: &["#"],
        quotes: &[TRIPLE_QUOTED, TRIPLE_SINGLE, DOUBLE_QUOTED, SINGLE_QUOTED],
        flags: &[
            LanguageFeature::AtAttributes,
            LanguageFeature::HashCommentsAnywhere,
            LanguageFeature::CapitalizedTypes,
        ],
        ..PLAIN
    },
    Language {
        names: "go golang",
        keywords: "break case chan const continue default defer else fallthrough for func go goto if \
            import interface map package range return select struct switch type var",
        literals: "true false nil iota",
        types: "any bool byte complex64 complex128 error float32 float64 int int8 int16 int32 int64 \
            rune string uint uint8 uint16 uint32 uint64 uintptr",
        line_comments: &["//"],
        block_comments: &[("/*", "*/")],
        quotes: &[DOUBLE_QUOTED, SINGLE_QUOTED, BACKTICK_MULTILINE_RAW],
        flags: &[LanguageFeature::CapitalizedTypes],
    },
    Language {
        names: "java kotlin kt kts scala groovy gradle",
        keywords: "abstract actual as assert break by case catch class companion const constructor \
            continue data def default do else enum expect extends extension final finally for \
            fun given goto if implements implicit import in infix init inline instanceof \
            interface internal is lateinit lazy match native new object open operator out \
            override package permits private protected public record reified return sealed \
            static super suspend switch synchronized this throw throws trait transient try type \
            val var vararg void volatile when where while with yield",
        literals: "true false null it",
        types: "boolean byte char double float int long short",
        line_comments: &["//"],
        block_comments: &[("/*", "*/")],
        quotes: &[TRIPLE_QUOTED, TRIPLE_SINGLE, DOUBLE_QUOTED, SINGLE_QUOTED],
        flags: &[
            LanguageFeature::AtAttributes,
            LanguageFeature::CapitalizedTypes,
        ],
    },
    Language {
        names: "c h cpp c++ cc cxx hpp objc arduino",
        keywords: "alignas alignof asm auto break case catch class co_await co_return co_yield concept \
            const const_cast consteval constexpr continue decltype default delete do \
            dynamic_cast else enum explicit export extern final for friend goto if import inline \
            module mutable namespace new noexcept operator override private protected public \
            register reinterpret_cast requires restrict return sizeof static static_assert \
            static_cast struct switch template this thread_local throw try typedef typeid \
            typename union using virtual volatile while",
        literals: "true false NULL nullptr",
        types: "bool char char8_t char16_t char32_t double float int int8_t int16_t int32_t int64_t \
            long short signed size_t ssize_t uint8_t uint16_t uint32_t uint64_t unsigned void \
            wchar_t",
        line_comments: &["//"],
        block_comments: &[("/*", "*/")],
        quotes: &[DOUBLE_QUOTED, SINGLE_QUOTED],
        flags: &[
            LanguageFeature::Preprocessor,
            LanguageFeature::CapitalizedTypes,
        ],
    },
    Language {
        names: "csharp cs c# dotnet",
        keywords: "abstract as async await base break case catch checked class const continue default \
            delegate do else enum event explicit extern finally fixed for foreach get goto if \
            implicit in init interface internal is lock namespace new operator out override \
            params partial private protected public readonly record ref required return sealed \
            set sizeof stackalloc static struct switch this throw try typeof unchecked unsafe \
            using var virtual volatile when where while with yield",
        literals: "true false null",
        types: "bool byte char decimal double dynamic float int long nint nuint object sbyte short \
            string uint ulong ushort void",
        line_comments: &["//"],
        block_comments: &[("/*", "*/")],
        quotes: &[DOUBLE_QUOTED, SINGLE_QUOTED],
        flags: &[
            LanguageFeature::Preprocessor,
            LanguageFeature::CapitalizedTypes,
        ],
    },
    Language {
        names: "swift",
        keywords: "actor any as associatedtype async await break case catch class continue convenience \
            default defer deinit didSet do dynamic else enum extension fallthrough fileprivate \
            final for func get guard if import in indirect init inout internal is isolated lazy \
            let mutating nonisolated open operator optional override private protocol public \
            repeat required rethrows return self set some static struct subscript super switch \
            throw throws try typealias unowned var weak where while willSet",
        literals: "true false nil",
        types: "Self",
        line_comments: &["//"],
        block_comments: &[("/*", "*/")],
        quotes: &[TRIPLE_QUOTED, TRIPLE_SINGLE, DOUBLE_QUOTED],
        flags: &[
            LanguageFeature::NestedComments,
            LanguageFeature::AtAttributes,
            LanguageFeature::Preprocessor,
            LanguageFeature::CapitalizedTypes,
        ],
    },
    Language {
        names: "dart",
        keywords: "abstract as assert async await base break case catch class const continue covariant \
            default deferred do dynamic else enum export extends extension external factory \
            final finally for get hide if implements import in interface is late library mixin \
            new on operator part required rethrow return sealed set show static super switch \
            sync this throw try typedef var void when while with yield",
        literals: "true false null",
        types: "bool double int num",
        line_comments: &["//"],
        block_comments: &[("/*", "*/")],
        quotes: &[TRIPLE_QUOTED, TRIPLE_SINGLE, DOUBLE_QUOTED, SINGLE_QUOTED],
        flags: &[
            LanguageFeature::AtAttributes,
            LanguageFeature::CapitalizedTypes,
        ],
    },
    Language {
        names: "php",
        keywords: "abstract and array as break callable case catch class clone const continue declare \
            default do echo else elseif empty enum extends final finally fn for foreach function \
            global goto if implements include include_once instanceof insteadof interface isset \
            list match namespace new or print private protected public readonly require \
            require_once return static switch throw trait try unset use var while xor yield",
        literals: "true false null self parent",
        types: "bool float int iterable mixed never object string void",
        line_comments: &["//", "#"],
        block_comments: &[("/*", "*/")],
        quotes: &[DOUBLE_MULTILINE, SINGLE_MULTILINE],
        flags: &[
            LanguageFeature::HashAttributes,
            LanguageFeature::DollarVariables,
            LanguageFeature::CapitalizedTypes,
            LanguageFeature::HashCommentsAnywhere,
        ],
    },
    Language {
        names: "ruby rb rake gemfile",
        keywords: "alias and begin break case class def defined do else elsif end ensure extend for if \
            in include loop module next not or private protected public raise redo require \
            require_relative rescue retry return self super then undef unless until when while \
            yield",
        literals: "true false nil",
        types: "attr_accessor attr_reader attr_writer",
        line_comments: &["#"],
        block_comments: &[("=begin", "=end")],
        quotes: &[DOUBLE_QUOTED, SINGLE_QUOTED],
        flags: &[
            LanguageFeature::AtAttributes,
            LanguageFeature::CapitalizedTypes,
        ],
    },
    Language {
        names: "elixir ex exs",
        keywords: "after alias and case catch cond def defimpl defmacro defmodule defp defprotocol \
            defstruct do else end fn for if import in not or quote raise receive require rescue \
            try unless unquote use when with",
        literals: "true false nil",
        line_comments: &["#"],
        quotes: &[TRIPLE_QUOTED, TRIPLE_SINGLE, DOUBLE_QUOTED, SINGLE_QUOTED],
        flags: &[
            LanguageFeature::AtAttributes,
            LanguageFeature::CapitalizedTypes,
        ],
        ..PLAIN
    },
    Language {
        names: "lua luau",
        keywords: "and break continue do else elseif end export for function goto if in local not or \
            repeat return then type until while",
        literals: "true false nil self",
        line_comments: &["--"],
        block_comments: &[("--[[", "]]")],
        quotes: &[DOUBLE_QUOTED, SINGLE_QUOTED],
        ..PLAIN
    },
    Language {
        names: "perl pl",
        keywords: "and cmp do else elsif eq for foreach ge given gt if last le local lt my ne next no \
            not or our package redo require return sub unless until use when while",
        literals: "undef",
        line_comments: &["#"],
        block_comments: &[("=pod", "=cut")],
        quotes: &[DOUBLE_MULTILINE, SINGLE_MULTILINE],
        flags: &[LanguageFeature::DollarVariables],
        ..PLAIN
    },
    Language {
        names: "r",
        keywords: "break else for function if in library next repeat require return while",
        literals: "TRUE FALSE NULL NA NaN Inf",
        line_comments: &["#"],
        quotes: &[DOUBLE_QUOTED, SINGLE_QUOTED],
        flags: &[LanguageFeature::HashCommentsAnywhere],
        ..PLAIN
    },
    Language {
        names: "julia jl",
        keywords: "abstract baremodule begin break catch const continue do else elseif end export \
            finally for function global if import in let local macro module mutable primitive \
            quote return struct try type using where while",
        literals: "true false nothing missing",
        line_comments: &["#"],
        block_comments: &[("#=", "=#")],
        quotes: &[TRIPLE_QUOTED, TRIPLE_SINGLE, DOUBLE_QUOTED],
        flags: &[
            LanguageFeature::AtAttributes,
            LanguageFeature::CapitalizedTypes,
            LanguageFeature::HashCommentsAnywhere,
        ],
        ..PLAIN
    },
    Language {
        names: "haskell hs elm purescript",
        keywords: "as case class data deriving do else exposing family forall foreign hiding if import \
            in infix infixl infixr instance let module newtype of port qualified then type where",
        literals: "True False",
        line_comments: &["--"],
        block_comments: &[("{-", "-}")],
        quotes: &[DOUBLE_QUOTED],
        flags: &[
            LanguageFeature::NestedComments,
            LanguageFeature::CapitalizedTypes,
        ],
        ..PLAIN
    },
    Language {
        names: "ocaml ml fsharp fs",
        keywords: "and as assert begin class constraint do done downto else end exception external for \
            fun function functor if in include inherit initializer lazy let match method module \
            mutable new nonrec object of open or private rec sig struct then to try type val \
            virtual when while with",
        literals: "true false",
        types: "bool char float int list option string unit",
        line_comments: &["//"],
        block_comments: &[("(*", "*)")],
        quotes: &[DOUBLE_QUOTED],
        flags: &[
            LanguageFeature::NestedComments,
            LanguageFeature::CapitalizedTypes,
        ],
    },
    Language {
        names: "clojure clj cljs edn lisp scheme racket elisp",
        keywords: "and case cond def define defmacro defn defrecord defun do fn for if if-let lambda \
            let letfn loop ns or quote recur require set! unless when when-let",
        literals: "true false nil t",
        line_comments: &[";", ";;"],
        quotes: &[DOUBLE_QUOTED],
        flags: &[LanguageFeature::HyphenatedNames],
        ..PLAIN
    },
    Language {
        names: "zig",
        keywords: "addrspace align allowzero and anyframe asm async await break callconv catch comptime \
            const continue defer else enum errdefer error export extern fn for if inline noalias \
            opaque or orelse packed pub resume return struct suspend switch test threadlocal try \
            union unreachable usingnamespace var volatile while",
        literals: "true false null undefined",
        types: "anyopaque anytype bool f32 f64 i8 i16 i32 i64 isize noreturn type u8 u16 u32 u64 \
            usize void",
        line_comments: &["//"],
        quotes: &[DOUBLE_QUOTED, SINGLE_QUOTED],
        flags: &[
            LanguageFeature::AtAttributes,
            LanguageFeature::CapitalizedTypes,
        ],
        ..PLAIN
    },
    Language {
        names: "solidity sol",
        keywords: "abstract as assembly break calldata catch constant constructor continue contract \
            delete do else emit enum error event external for function if immutable import \
            indexed interface internal is library mapping memory modifier new override payable \
            pragma private public pure return returns storage struct try type unchecked using \
            view virtual while",
        literals: "true false this",
        types: "address bool bytes bytes32 int int256 string uint uint8 uint256",
        line_comments: &["//"],
        block_comments: &[("/*", "*/")],
        quotes: &[DOUBLE_QUOTED, SINGLE_QUOTED],
        flags: &[LanguageFeature::CapitalizedTypes],
    },
    Language {
        names: "bash sh shell zsh fish console ksh",
        keywords: "alias break case cd continue declare do done echo elif else esac eval exec exit \
            export fi for function if in local printf read readonly return select set shift \
            source then trap unset until while",
        literals: "true false",
        line_comments: &["#"],
        quotes: &[DOUBLE_MULTILINE, SINGLE_MULTILINE],
        flags: &[
            LanguageFeature::DollarVariables,
            LanguageFeature::HyphenatedNames,
        ],
        ..PLAIN
    },
    Language {
        names: "powershell ps1 pwsh",
        keywords: "begin break catch class continue data do dynamicparam else elseif end enum exit \
            filter finally for foreach from function if in param process return switch throw \
            trap try until using while",
        line_comments: &["#"],
        block_comments: &[("<#", "#>")],
        quotes: &[DOUBLE_MULTILINE, SINGLE_MULTILINE],
        flags: &[
            LanguageFeature::DollarVariables,
            LanguageFeature::CaseInsensitive,
            LanguageFeature::HyphenatedNames,
            LanguageFeature::HashCommentsAnywhere,
        ],
        ..PLAIN
    },
    Language {
        names: "sql postgres postgresql mysql sqlite plsql tsql",
        keywords: "add all alter analyze and any as asc attach begin between by cascade case cast check \
            collate column commit conflict constraint create cross current database default \
            delete desc distinct do drop each else end escape except exclude exists explain \
            fetch filter following for foreign from full function generated glob grant group \
            having if ilike in index inner insert instead intersect into is isnull join key \
            language lateral left like limit materialized natural no not nothing notnull nulls \
            of offset on only or order outer over partition pragma preceding primary procedure \
            range recursive references replace restrict returning returns right rollback row \
            rows savepoint select set strict table temp temporary then to transaction trigger \
            truncate unbounded union unique update using values view virtual when where window \
            with without",
        literals: "true false null",
        types: "bigint binary bit blob boolean bytea char date datetime decimal double float int \
            integer interval json jsonb numeric real serial smallint text time timestamp \
            timestamptz uuid varchar",
        line_comments: &["--", "#"],
        block_comments: &[("/*", "*/")],
        quotes: &[SINGLE_RAW, DOUBLE_RAW, BACKTICK_RAW],
        flags: &[LanguageFeature::CaseInsensitive],
    },
    Language {
        names: "json jsonc json5 jsonl ndjson geojson webmanifest",
        literals: "true false null NaN Infinity",
        line_comments: &["//", "#"],
        block_comments: &[("/*", "*/")],
        quotes: &[DOUBLE_QUOTED, SINGLE_QUOTED],
        flags: &[LanguageFeature::StringKeys],
        ..PLAIN
    },
    Language {
        names: "yaml yml",
        literals: "true false null yes no on off True False",
        line_comments: &["#"],
        quotes: &[DOUBLE_QUOTED, SINGLE_RAW],
        flags: &[LanguageFeature::ColonKeys, LanguageFeature::HyphenatedNames],
        ..PLAIN
    },
    Language {
        names: "toml ini cfg conf properties env dotenv editorconfig",
        literals: "true false on off yes no inf nan",
        line_comments: &["#", ";"],
        quotes: &[TRIPLE_QUOTED, TRIPLE_SINGLE, DOUBLE_QUOTED, SINGLE_RAW],
        flags: &[
            LanguageFeature::EqualsKeys,
            LanguageFeature::HyphenatedNames,
            LanguageFeature::HashCommentsAnywhere,
        ],
        ..PLAIN
    },
    Language {
        names: "css scss sass less postcss",
        keywords: "important",
        literals: "inherit initial unset revert none auto",
        line_comments: &["//"],
        block_comments: &[("/*", "*/")],
        quotes: &[DOUBLE_QUOTED, SINGLE_QUOTED],
        flags: &[
            LanguageFeature::AtAttributes,
            LanguageFeature::DollarVariables,
            LanguageFeature::HyphenatedNames,
            LanguageFeature::ColonProperties,
        ],
        ..PLAIN
    },
    Language {
        names: "dockerfile docker containerfile",
        keywords: "add arg as cmd copy entrypoint env expose from healthcheck label maintainer onbuild \
            run shell stopsignal user volume workdir",
        line_comments: &["#"],
        quotes: &[DOUBLE_MULTILINE, SINGLE_MULTILINE],
        flags: &[
            LanguageFeature::DollarVariables,
            LanguageFeature::CaseInsensitive,
            LanguageFeature::HyphenatedNames,
        ],
        ..PLAIN
    },
    Language {
        names: "makefile make mk just justfile",
        keywords: "define else endef endif export ifdef ifeq ifndef ifneq include override set unexport",
        line_comments: &["#"],
        quotes: &[DOUBLE_QUOTED, SINGLE_QUOTED],
        flags: &[
            LanguageFeature::DollarVariables,
            LanguageFeature::ColonKeys,
            LanguageFeature::HyphenatedNames,
        ],
        ..PLAIN
    },
    Language {
        names: "nginx caddyfile",
        keywords: "if include location map proxy_pass return rewrite root server server_name upstream \
            listen",
        literals: "on off",
        line_comments: &["#"],
        quotes: &[DOUBLE_QUOTED, SINGLE_QUOTED],
        flags: &[LanguageFeature::DollarVariables],
        ..PLAIN
    },
    Language {
        names: "hcl terraform tf",
        keywords: "data for in locals module moved output provider resource terraform variable if",
        literals: "true false null",
        types: "any bool list map number object set string tuple",
        line_comments: &["#", "//"],
        block_comments: &[("/*", "*/")],
        quotes: &[DOUBLE_QUOTED],
        flags: &[
            LanguageFeature::EqualsKeys,
            LanguageFeature::HyphenatedNames,
        ],
    },
    Language {
        names: "nix",
        keywords: "assert else if in inherit let or rec then with",
        literals: "true false null",
        line_comments: &["#"],
        block_comments: &[("/*", "*/")],
        quotes: &[DOUBLE_QUOTED],
        flags: &[LanguageFeature::HyphenatedNames],
        ..PLAIN
    },
    Language {
        names: "graphql gql",
        keywords: "directive enum extend fragment implements input interface mutation on query \
            repeatable scalar schema subscription type union",
        literals: "true false null",
        types: "Boolean Float ID Int String",
        line_comments: &["#"],
        quotes: &[TRIPLE_QUOTED, TRIPLE_SINGLE, DOUBLE_QUOTED],
        flags: &[
            LanguageFeature::AtAttributes,
            LanguageFeature::DollarVariables,
            LanguageFeature::CapitalizedTypes,
            LanguageFeature::ColonProperties,
        ],
        ..PLAIN
    },
    Language {
        names: "protobuf proto wit thrift",
        keywords: "enum export extend extensions extern flags func import include interface map message \
            oneof option optional package repeated required reserved resource returns rpc \
            service stream syntax type use variant record world",
        literals: "true false",
        types: "bool bytes double fixed32 fixed64 float int32 int64 list result s8 s16 s32 s64 \
            sint32 sint64 string tuple u8 u16 u32 u64 uint32 uint64",
        line_comments: &["//"],
        block_comments: &[("/*", "*/")],
        quotes: &[DOUBLE_QUOTED, SINGLE_QUOTED],
        flags: &[
            LanguageFeature::AtAttributes,
            LanguageFeature::CapitalizedTypes,
            LanguageFeature::HyphenatedNames,
        ],
    },
];
