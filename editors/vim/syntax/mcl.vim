" Colours of the language mcl.
if exists('b:current_syntax')
  finish
endif

syntax case match
syntax iskeyword @,48-57,_

syntax match mclName '\<[a-z][a-z0-9_]*\>'
syntax match mclCall '\<[a-z][a-z0-9_]*\ze\s*('
syntax match mclParameter '\<[a-z][a-z0-9_]*\ze\s*=>'
syntax match mclKind '^\s*\%(collect\s\+\)\?\zs[a-z][a-z0-9_]*\%(:[a-z][a-z0-9_]*\)*\ze\s*["\[$(]'
syntax match mclCapitalized '\<[A-Z][a-z0-9_]*'

syntax keyword mclConditional if else
syntax keyword mclRepeat for forkv
syntax keyword mclImport import include as
syntax keyword mclStatement panic collect
syntax keyword mclWordOperator and or not in
syntax keyword mclStructure class func
syntax keyword mclType bool str int float map struct variant
syntax keyword mclBoolean true false

syntax match mclOperator '=>\|->\|?:\|<|>\|||\|[=!<>]=\|[-+*/=<>]'
syntax match mclNumber '-\?\<\d\+\>'
syntax match mclFloat '-\?\<\d\+\.\d\+\>'
syntax match mclVariable '\$[a-z][a-z0-9_]*\%(\.[a-z][a-z0-9_]*\)*'
" Behind the dot of an alias any word may be a name.
syntax match mclMember '\.\s*\zs[a-z][a-z0-9_]*'
syntax match mclMember '\.\s*\zs[a-z][a-z0-9_]*\ze\s*(' contains=NONE

syntax match mclEscape '\\[abfnrtv\\"$]' contained
syntax match mclBadEscape '\\[^abfnrtv\\"$]' contained
syntax match mclInterpolation '\${[a-z0-9_.]\+}' contained
syntax region mclString start='"' skip='\\\\\|\\"' end='"' contains=mclEscape,mclBadEscape,mclInterpolation
syntax keyword mclTodo TODO FIXME XXX contained
syntax match mclComment '#.*$' contains=mclTodo,@Spell

syntax region mclBlock start='{' end='}' transparent fold
syntax sync minlines=200

highlight default link mclConditional Conditional
highlight default link mclRepeat Repeat
highlight default link mclImport Include
highlight default link mclStatement Statement
highlight default link mclWordOperator Operator
highlight default link mclStructure Structure
highlight default link mclType Type
highlight default link mclBoolean Boolean
highlight default link mclOperator Operator
highlight default link mclNumber Number
highlight default link mclFloat Float
highlight default link mclVariable Identifier
highlight default link mclParameter Label
highlight default link mclKind Keyword
highlight default link mclCapitalized Keyword
highlight default link mclCall Function
highlight default link mclMember Function
highlight default link mclString String
highlight default link mclEscape SpecialChar
highlight default link mclBadEscape Error
highlight default link mclInterpolation Special
highlight default link mclComment Comment
highlight default link mclTodo Todo

let b:current_syntax = 'mcl'
