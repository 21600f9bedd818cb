//! Descriptions of less common languages and of configuration files.

use super::languages::{Language, LanguageFeature, StringSyntax};

const DOUBLE_QUOTED: StringSyntax = string_syntax("\"", true);
const DOUBLE_RAW: StringSyntax = string_syntax("\"", false);
const SINGLE_QUOTED: StringSyntax = string_syntax("'", true);
const SINGLE_RAW: StringSyntax = string_syntax("'", false);

const fn string_syntax(mark: &'static str, escapes: bool) -> StringSyntax {
    StringSyntax {
        mark,
        escapes,
        lines: false,
    }
}

/// Base of the descriptions.
const PLAIN: Language = Language {
    names: "",
    keywords: "",
    literals: "",
    types: "",
    line_comments: &[],
    block_comments: &[],
    quotes: &[DOUBLE_QUOTED, SINGLE_QUOTED],
    flags: &[],
};

/// All languages of this module.
pub(super) const LANGUAGES: &[Language] = &[
    Language {
        names: "erlang erl hrl",
        keywords: "after and andalso begin bnot bor bsl bsr bxor band case catch cond div end fun if let maybe not of or orelse \
            receive rem try when xor",
        literals: "true false undefined ok error",
        line_comments: &["%"],
        flags: &[LanguageFeature::CapitalizedTypes],
        ..PLAIN
    },
    Language {
        names: "tex latex bibtex context",
        line_comments: &["%"],
        quotes: &[],
        flags: &[LanguageFeature::BackslashCommands],
        ..PLAIN
    },
    Language {
        names: "matlab octave mlx",
        keywords: "break case catch classdef continue else elseif end endfunction endif endfor endwhile enumeration events for function \
            global if methods otherwise parfor persistent properties return spmd switch try while",
        literals: "true false pi inf nan Inf NaN eps ans",
        line_comments: &["%", "#", "..."],
        block_comments: &[("%{", "%}")],
        quotes: &[DOUBLE_RAW],
        ..PLAIN
    },
    Language {
        names: "cmake",
        keywords: "if elseif else endif foreach endforeach while endwhile function endfunction macro endmacro return include find_package \
            add_executable add_library add_subdirectory add_custom_command add_custom_target add_test cmake_minimum_required project set unset \
            target_link_libraries target_include_directories target_compile_options target_compile_definitions target_compile_features \
            target_sources install message option list string file",
        literals: "on off true false public private interface required version",
        line_comments: &["#"],
        quotes: &[DOUBLE_QUOTED],
        flags: &[
            LanguageFeature::CaseInsensitive,
            LanguageFeature::DollarVariables,
        ],
        ..PLAIN
    },
    Language {
        names: "asm assembly nasm masm gas s x86asm arm armasm",
        keywords: "mov movzx movsx lea push pop call ret jmp je jne jz jnz jg jge jl jle ja jb add sub mul imul div idiv inc dec and or \
            xor not shl shr sar cmp test int syscall nop ldr str ldp stp b bl bx beq bne cbz cbnz adr adrp svc section segment global extern \
            db dw dd dq resb resw resd resq equ times bits org",
        types: "rax rbx rcx rdx rsi rdi rsp rbp r8 r9 r10 r11 r12 r13 r14 r15 eax ebx ecx edx esi edi esp ebp ax bx cx dx al bl cl dl \
            sp lr pc fp byte word dword qword ptr",
        line_comments: &[";", "//", "#"],
        block_comments: &[("/*", "*/")],
        flags: &[LanguageFeature::CaseInsensitive],
        ..PLAIN
    },
    Language {
        names: "http rest",
        keywords: "GET POST PUT PATCH DELETE HEAD OPTIONS CONNECT TRACE HTTP",
        line_comments: &["###"],
        quotes: &[DOUBLE_QUOTED],
        flags: &[LanguageFeature::ColonKeys, LanguageFeature::HyphenatedNames],
        ..PLAIN
    },
    Language {
        names: "vim viml vimscript vimrc",
        keywords: "autocmd augroup call command echo echom echoerr else elseif endif endfor endfunction endtry endwhile execute filetype \
            finish for function hi highlight if in inoremap let map nmap nnoremap noremap normal return set setlocal silent source syntax try \
            catch unlet vmap vnoremap while",
        literals: "v:true v:false v:null on off",
        quotes: &[SINGLE_RAW],
        ..PLAIN
    },
    Language {
        names: "fortran f90 f95 f03 f77",
        keywords: "allocatable allocate call case contains cycle deallocate dimension do else elseif end enddo endif exit forall function if \
            implicit in inout intent interface module none only out parameter pointer print procedure program pure read recursive result \
            return select stop subroutine target then type use where while write",
        types: "integer real complex logical character double precision",
        line_comments: &["!"],
        quotes: &[DOUBLE_RAW, SINGLE_RAW],
        flags: &[LanguageFeature::CaseInsensitive],
        ..PLAIN
    },
    Language {
        names: "pascal delphi objectpascal pas freepascal",
        keywords: "and array as asm begin case class const constructor destructor div do downto else end except exports file finalization \
            finally for function goto if implementation in inherited initialization interface is label mod not object of on or out packed \
            procedure program property raise record repeat set shl shr then to try type unit until uses var while with xor private public \
            protected published override virtual",
        literals: "true false nil",
        types: "integer cardinal byte word longint int64 real double single extended char string boolean variant pointer",
        line_comments: &["//"],
        block_comments: &[("{", "}"), ("(*", "*)")],
        quotes: &[SINGLE_RAW],
        flags: &[LanguageFeature::CaseInsensitive],
    },
    Language {
        names: "ada",
        keywords: "abort abs abstract accept access all and array at begin body case constant declare delay delta digits do else elsif end \
            entry exception exit for function generic goto if in interface is limited loop mod new not null of or others out overriding \
            package pragma private procedure protected raise range record rem renames requeue return reverse select separate some subtype \
            synchronized tagged task terminate then type until use when while with xor",
        types: "integer float boolean character string natural positive duration",
        line_comments: &["--"],
        quotes: &[DOUBLE_RAW],
        flags: &[LanguageFeature::CaseInsensitive],
        ..PLAIN
    },
    Language {
        names: "nim nimrod",
        keywords: "addr and as asm bind block break case cast concept const continue converter defer discard distinct div do elif else end \
            enum except export finally for from func if import in include interface is isnot iterator let macro method mixin mod nil not \
            notin object of or out proc ptr raise ref return shl shr static template try tuple type using var when while xor yield",
        literals: "true false nil",
        types: "int int8 int16 int32 int64 uint float float32 float64 bool char string seq",
        line_comments: &["#"],
        block_comments: &[("#[", "]#")],
        flags: &[LanguageFeature::CapitalizedTypes],
        ..PLAIN
    },
    Language {
        names: "d dlang crystal cr v vlang odin",
        keywords: "alias abstract align annotation as assert auto begin body break case cast catch class const continue debug def defer \
            delegate delete deprecated do else elsif end ensure enum export extern final finally fn for foreach fun function goto if immutable \
            import in include inout interface invariant is lazy lib loop macro match mixin module mut new next nothrow of or out override \
            package pragma private proc property protected public pub pure ref require rescue return scope select self shared static struct \
            super switch synchronized template then this throw try type typedef typeof union unittest unless until using version when while \
            with yield",
        literals: "true false null nil none",
        types: "bool byte char double dchar float int long real short size_t string ubyte uint ulong ushort void wchar i8 i16 i32 i64 u8 \
            u16 u32 u64 f32 f64",
        line_comments: &["//", "#"],
        block_comments: &[("/*", "*/"), ("/+", "+/")],
        flags: &[
            LanguageFeature::AtAttributes,
            LanguageFeature::CapitalizedTypes,
        ],
        ..PLAIN
    },
    Language {
        names: "verilog systemverilog sv vhdl vhd",
        keywords: "always always_comb always_ff always_latch and architecture assign begin case casex casez component config default defparam \
            disable downto else elsif end endcase endfunction endgenerate endmodule endtask entity file for forever function generate generic \
            genvar if import initial inout input interface is library localparam loop map modport module nand negedge nor not of or others out \
            output package parameter port posedge process range repeat return select signal struct task then to type typedef unique use \
            variable wait when while with xor",
        types: "bit bit_vector byte int integer logic real reg signed std_logic std_logic_vector string supply0 supply1 tri unsigned wire",
        line_comments: &["//", "--"],
        block_comments: &[("/*", "*/")],
        quotes: &[DOUBLE_QUOTED],
        flags: &[
            LanguageFeature::CaseInsensitive,
            LanguageFeature::DollarVariables,
        ],
        ..PLAIN
    },
    Language {
        names: "glsl hlsl wgsl metal shader cuda cu opencl cl",
        keywords: "attribute binding break buffer case cbuffer const constant continue default discard do else enable flat fn for highp if in \
            inout kernel layout let location loop lowp mediump out override precision readonly return shared smooth static struct switch \
            texture uniform var varying vertex fragment while workgroup __global__ __device__ __host__ __shared__ __kernel __global",
        literals: "true false",
        types: "bool float float2 float3 float4 float4x4 half int uint vec2 vec3 vec4 ivec2 ivec3 ivec4 mat2 mat3 mat4 sampler2D samplerCube \
            f32 i32 u32 f16 vec2f vec3f vec4f void dim3 size_t",
        line_comments: &["//"],
        block_comments: &[("/*", "*/")],
        quotes: &[DOUBLE_QUOTED],
        flags: &[LanguageFeature::Preprocessor, LanguageFeature::AtAttributes],
    },
    Language {
        names: "bat batch cmd dosbatch",
        keywords: "call cd choice cls copy del do echo else endlocal errorlevel exist exit for goto if in md mkdir move not off on pause popd \
            pushd rd ren rmdir set setlocal shift start title type xcopy",
        line_comments: &["::", "rem ", "REM ", "@rem "],
        quotes: &[DOUBLE_RAW],
        flags: &[LanguageFeature::CaseInsensitive],
        ..PLAIN
    },
    Language {
        names: "vb vbnet vba visualbasic vbs vbscript basic",
        keywords: "addhandler and andalso as byref byval call case catch class const continue declare default delegate dim do each else \
            elseif end enum event exit finally for friend function get goto handles if implements imports in inherits interface is isnot let \
            like loop me mod module mustinherit mustoverride namespace new next not of on option optional or orelse overridable overrides \
            private property protected public raiseevent readonly redim resume return select set shared static step stop structure sub then \
            throw to try using wend when while with xor",
        literals: "true false nothing",
        types: "boolean byte char date decimal double integer long object short single string variant",
        line_comments: &["'"],
        quotes: &[DOUBLE_RAW],
        flags: &[LanguageFeature::CaseInsensitive],
        ..PLAIN
    },
    Language {
        names: "objective-c objectivec obj-c objective-c++ mm m",
        keywords: "break case const continue default do else enum extern for goto if in inline return self static struct super switch typedef \
            union volatile while nonatomic strong weak copy assign readonly readwrite nullable nonnull",
        literals: "YES NO nil NULL TRUE FALSE true false",
        types: "BOOL CGFloat Class IMP NSInteger NSUInteger SEL char double float id instancetype int long short unsigned void",
        line_comments: &["//"],
        block_comments: &[("/*", "*/")],
        flags: &[
            LanguageFeature::AtAttributes,
            LanguageFeature::Preprocessor,
            LanguageFeature::CapitalizedTypes,
        ],
        ..PLAIN
    },
    Language {
        names: "coffeescript coffee gdscript gd godot starlark bazel bzl meson",
        keywords: "and as await break by case catch class class_name const continue def delete do elif else enum export extends finally for \
            func foreach endforeach if endif in instanceof is isnt lambda load loop match new not of or own onready pass return self signal \
            static super switch then throw try typeof unless until var when while yield",
        literals: "true false null undefined True False None yes no on off",
        types: "bool float int String Vector2 Vector3 Array Dictionary Node",
        line_comments: &["#"],
        block_comments: &[("###", "###")],
        flags: &[
            LanguageFeature::AtAttributes,
            LanguageFeature::DollarVariables,
            LanguageFeature::CapitalizedTypes,
        ],
        ..PLAIN
    },
    Language {
        names: "prolog pro datalog rego",
        keywords: "is not mod rem dynamic discontiguous module use_module default import package as with some every in if else contains",
        literals: "true false fail null",
        line_comments: &["%", "#"],
        block_comments: &[("/*", "*/")],
        flags: &[LanguageFeature::CapitalizedTypes],
        ..PLAIN
    },
    Language {
        names: "awk gawk tcl tk expect",
        keywords: "BEGIN END break case catch continue delete do else elseif exit expr for foreach func function getline global if in incr \
            lappend list namespace next package print printf proc puts return set switch upvar variable while",
        line_comments: &["#"],
        quotes: &[DOUBLE_QUOTED],
        flags: &[LanguageFeature::DollarVariables],
        ..PLAIN
    },
    Language {
        names: "gherkin feature cucumber",
        keywords: "Feature Background Scenario Outline Examples Given When Then And But Rule",
        line_comments: &["#"],
        flags: &[LanguageFeature::AtAttributes],
        ..PLAIN
    },
    Language {
        names: "prisma bicep apex",
        keywords: "model enum datasource generator type view param var resource module output targetScope existing for in if class public \
            private global static final void new return trigger on insert update delete select from where",
        literals: "true false null",
        types: "String Int Float Boolean DateTime Json Bytes BigInt Decimal string int bool object array Integer List Map Set Id",
        line_comments: &["//"],
        block_comments: &[("/*", "*/")],
        flags: &[
            LanguageFeature::AtAttributes,
            LanguageFeature::CapitalizedTypes,
        ],
        ..PLAIN
    },
    Language {
        names: "cobol cob abap sas",
        keywords: "accept add call close compute data delete display division do else end environment evaluate exit file form identification \
            if into linkage loop move multiply open perform pic picture proc procedure program program-id quit read run section select set \
            stop storage subtract then to until using value varying when where working-storage write",
        line_comments: &["*>", "\""],
        quotes: &[SINGLE_RAW],
        flags: &[
            LanguageFeature::CaseInsensitive,
            LanguageFeature::HyphenatedNames,
        ],
        ..PLAIN
    },
];
