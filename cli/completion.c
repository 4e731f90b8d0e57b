/*
 * completion.c - scripts that let shells complete the command's words
 *
 * None of them knows a command or an option: they ask
 * `bloomery help --complete` (complete.c) for each word, and leave names of
 * files to their shell.
 */
#include <string.h>

#include "cli/cli.h"
#include "report/say.h"

/* readline splits words at =, so what belongs together is joined first, and
 * what stands before the last = is taken off the answers again. */
static const char bash_script[] =
    "# bash completion for bloomery; written by\n"
    "# bloomery help --completion bash\n"
    "\n"
    "_bloomery()\n"
    "{\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} words=() line word found any i\n"
    "    local joins=; [[ $COMP_WORDBREAKS == *=* ]] && joins=yes\n"
    "    for ((i = 1; i <= COMP_CWORD; i++)); do\n"
    "        word=${COMP_WORDS[i]}\n"
    "        if ((i > 1)) && [[ $joins && ( $word == =* || "
    "${COMP_WORDS[i-1]} == = ) ]]; then\n"
    "            words[${#words[@]}-1]+=$word\n"
    "        else\n"
    "            words+=(\"$word\")\n"
    "        fi\n"
    "    done\n"
    "    [[ $joins ]] && cur=${cur#=}\n"
    "    COMPREPLY=()\n"
    "    while IFS= read -r line; do\n"
    "        case $line in\n"
    "        :folders)\n"
    "            compopt -o filenames\n"
    "            while IFS= read -r found; do COMPREPLY+=(\"$found\"); done "
    "< <(compgen -d -- \"$cur\") ;;\n"
    "        :files*)\n"
    "            compopt -o filenames\n"
    "            for word in ${line#:files}; do\n"
    "                while IFS= read -r found; do COMPREPLY+=(\"$found\"); "
    "done < <(compgen -f -X \"!*$word\" -- \"$cur\")\n"
    "            done\n"
    "            any=f; ((${#COMPREPLY[@]})) && any=d\n"
    "            while IFS= read -r found; do COMPREPLY+=(\"$found\"); done "
    "< <(compgen -$any -- \"$cur\") ;;\n"
    "        *)\n"
    "            word=${line%%$'\\t'*}\n"
    "            [[ $word == *= ]] && compopt -o nospace\n"
    "            [[ $joins && ${words[${#words[@]}-1]} == *=* ]] && "
    "word=${word##*=}\n"
    "            COMPREPLY+=(\"$word\") ;;\n"
    "        esac\n"
    "    done < <(bloomery help --complete -- \"${words[@]}\" 2>/dev/null)\n"
    "}\n"
    "complete -F _bloomery bloomery\n";

static const char zsh_script[] =
    "#compdef bloomery\n"
    "# zsh completion for bloomery; written by\n"
    "# bloomery help --completion zsh\n"
    "\n"
    "_bloomery() {\n"
    "    local line word ret=1\n"
    "    local -a plain open endings\n"
    "    for line in \"${(@f)$(bloomery help --complete -- "
    "\"${(@Q)words[2,CURRENT]}\" 2>/dev/null)}\"; do\n"
    "        case $line in\n"
    "        '') ;;\n"
    "        :folders) compset -P '--*='; _files -/ && ret=0 ;;\n"
    "        :files*)\n"
    "            compset -P '--*='\n"
    "            endings=(${=line#:files})\n"
    "            if (($#endings)); then\n"
    "                _files -g \"${(j: :)endings/#/*}\" && ret=0\n"
    "            else\n"
    "                _files && ret=0\n"
    "            fi ;;\n"
    "        *)\n"
    "            word=${line%%$'\\t'*}\n"
    "            line=${word//:/\\\\:}${${line#$word}/$'\\t'/:}\n"
    "            [[ $word == *= ]] && open+=(\"$line\") || plain+=(\"$line\") "
    ";;\n"
    "        esac\n"
    "    done\n"
    "    (($#plain)) && _describe bloomery plain && ret=0\n"
    "    (($#open)) && _describe bloomery open -S '' && ret=0\n"
    "    return ret\n"
    "}\n"
    "\n"
    "# Loaded by compinit it is this function; sourced, it has to be named.\n"
    "if [[ $funcstack[1] == _bloomery ]]; then\n"
    "    _bloomery \"$@\"\n"
    "else\n"
    "    compdef _bloomery bloomery\n"
    "fi\n";

static const char fish_script[] =
    "# fish completion for bloomery; written by\n"
    "# bloomery help --completion fish\n"
    "\n"
    "function __bloomery_complete\n"
    "    set -l last (commandline -ct)\n"
    "    set -l before (commandline -opc)\n"
    "    for line in (bloomery help --complete -- $before[2..-1] \"$last\" "
    "2>/dev/null)\n"
    "        switch $line\n"
    "            case ':folders'\n"
    "                __fish_complete_directories (string replace -r -- "
    "'^--[^=]*=' '' \"$last\")\n"
    "            case ':files*'\n"
    "                set -l endings (string split -n ' ' -- (string replace "
    "':files' '' -- $line))\n"
    "                if test (count $endings) -gt 0\n"
    "                    __fish_complete_suffix $endings\n"
    "                else\n"
    "                    __fish_complete_path (string replace -r -- "
    "'^--[^=]*=' '' \"$last\")\n"
    "                end\n"
    "            case '*'\n"
    "                printf '%s\\n' $line\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c bloomery -f -k -a '(__bloomery_complete)'\n";

int completion_script(unsigned shell)
{
    static const char *const scripts[] = { bash_script, zsh_script,
                                           fish_script };
    fputs(scripts[shell], stdout);
    return YES;
}
