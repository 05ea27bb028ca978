package godwit.tests;

import java.io.IOException;
import java.nio.file.Files;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/** Files of this machine as Hadoop sees them. It sets their modes by itself, where Hadoop would start `chmod` for each. */
public class DirectFiles extends LocalFileSystem {
  public DirectFiles() {
    super(new Raw());
  }

  public static class Raw extends RawLocalFileSystem {
    @Override
    public void setPermission(Path path, FsPermission mode) throws IOException {
      Files.setAttribute(pathToFile(path).toPath(), "unix:mode", (int) mode.toShort());
    }
  }
}
