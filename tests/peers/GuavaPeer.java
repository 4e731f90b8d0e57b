/*
 * GuavaPeer.java - the Guava side of tests/test_foreign_programs.py
 *
 *     java GuavaPeer make FUNNEL N P KEYS FILE    a filter of the lines of KEYS
 *     java GuavaPeer ask  FUNNEL 0 0 KEYS FILE    prints the lines that may be in
 *
 * Any number of these, one after another; answers of each end in a line "--".
 */
import com.google.common.hash.BloomFilter;
import com.google.common.hash.Funnel;
import com.google.common.hash.Funnels;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.List;
import java.util.Locale;
import java.util.function.Function;

public class GuavaPeer {
    static <T> void run(String[] a, int at, Funnel<? super T> funnel,
                        Function<String, T> value) throws Exception {
        List<String> keys = Files.readAllLines(Paths.get(a[at + 4]), StandardCharsets.UTF_8);
        PrintStream out = new PrintStream(System.out, true, "UTF-8");
        if (a[at].equals("make")) {
            BloomFilter<T> f = BloomFilter.create(
                funnel, Long.parseLong(a[at + 2]), Double.parseDouble(a[at + 3]));
            for (String k : keys)
                f.put(value.apply(k));
            try (OutputStream to = new FileOutputStream(a[at + 5])) {
                f.writeTo(to);
            }
        } else {
            BloomFilter<T> f;
            try (InputStream from = new FileInputStream(a[at + 5])) {
                f = BloomFilter.readFrom(from, funnel);
            }
            for (String k : keys)
                if (f.mightContain(value.apply(k)))
                    out.println(k);
        }
        out.println("--");
    }

    public static void main(String[] a) throws Exception {
        for (int at = 0; at + 6 <= a.length; at += 6)
            switch (a[at + 1]) {
            case "bytes":
                run(a, at, Funnels.byteArrayFunnel(), k -> k.getBytes(StandardCharsets.UTF_8));
                break;
            case "string":
                run(a, at, Funnels.stringFunnel(StandardCharsets.UTF_8), k -> (CharSequence) k);
                break;
            case "lower": /* Keycloak's */
                run(a, at, Funnels.stringFunnel(StandardCharsets.UTF_8),
                    k -> (CharSequence) k.toLowerCase(Locale.ROOT));
                break;
            case "utf16":
                run(a, at, Funnels.unencodedCharsFunnel(), k -> (CharSequence) k);
                break;
            case "int32":
                run(a, at, Funnels.integerFunnel(), k -> Integer.valueOf(k));
                break;
            default:
                run(a, at, Funnels.longFunnel(), k -> Long.valueOf(k));
            }
    }
}
